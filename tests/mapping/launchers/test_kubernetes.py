"""An MPIJob fits its published schema, and its script makes the host file of the placement."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mapping.launchers.catalog import write
from mapping.launchers.kubernetes import NAME
from registry.errors import InvalidPlacement, InvalidValue
from tests.mapping.launchers.test_catalog import FABRIC, PLACEMENT, placed, ring
from tests.support.kubernetes import validated

ORDER = ["c", "b", "c", "a", "b", "a"]
WORKERS = {"placed-worker-0": "b", "placed-worker-1": "a", "placed-worker-2": "c"}
"""Node of each worker."""


def test_nodes_are_labelled_by_their_first_ranks() -> None:
    assert write("kubernetes-node-order", PLACEMENT, FABRIC) == "".join(
        f"kubectl label node {node} fabric-almanac/order={place} --overwrite\n"
        for place, node in enumerate("cba")
    )


def test_an_mpijob_has_a_worker_on_each_node() -> None:
    (job,) = validated(write("mpijob", PLACEMENT, FABRIC), "mpijob")
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]
    assert (worker["replicas"], job["spec"]["slotsPerWorker"]) == (3, 2)
    affinity = worker["template"]["spec"]["affinity"]
    (term,) = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["c", "b", "a"]}
    ]
    (apart,) = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"] == worker["template"]["metadata"]["labels"]
    assert NAME in apart["labelSelector"]["matchLabels"].values()


@pytest.mark.usefixtures("processes")
def test_the_script_writes_the_workers_in_rank_order(tmp_path: Path) -> None:
    (job,) = validated(write("mpijob", PLACEMENT, FABRIC), "mpijob")
    (container,) = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    shell, option, script = container["command"]
    for path in ("/etc/mpi/hostfile", "/tmp/workers", "/tmp/order", "/tmp/hosts"):  # those of the pod
        assert path in script
        script = script.replace(path, str(tmp_path / Path(path).name))
    (tmp_path / "hostfile").write_text("".join(f"{worker} slots=2\n" for worker in WORKERS))
    cases = " ".join(f"{worker}) echo {node};;" for worker, node in WORKERS.items())
    for name, text in {"ssh": f"case $1 in {cases} esac", "mpirun": 'echo "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [shell, option, script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"--hostfile {tmp_path}/hosts --map-by seq -n 6 ./program\n"
    node_of = [WORKERS[worker] for worker in (tmp_path / "hosts").read_text().split()]
    assert node_of == ORDER


def test_names_are_those_of_nodes() -> None:
    fabric = ring(["Node1", "my_host"], [1, 1])
    upper = placed(fabric, ["Node1"], [1], [0])
    assert "kubectl label node node1 " in write("kubernetes-node-order", upper, fabric)
    for format in ("kubernetes-node-order", "mpijob"):
        with pytest.raises(InvalidValue, match="my_host"):
            write(format, placed(fabric, ["my_host"], [1], [0]), fabric)


def test_an_order_that_is_too_long_for_a_command_is_refused() -> None:
    fabric = ring(["a" * 60, "b" * 60], [1500, 1500])
    turns = [rank // 2 + 1500 * (rank % 2) for rank in range(3000)]
    with pytest.raises(InvalidPlacement, match="3000 ranks: it is too long"):
        write("mpijob", placed(fabric, fabric.names, [1500, 1500], turns), fabric)
