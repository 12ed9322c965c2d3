"""Launcher files: what they say is where the ranks sit, read back by other code and by hand."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.flux import FLUX_TASKMAP
from ingest.formats.placements import HOSTFILE, MPICH_RANK_ORDER, OPENMPI_RANKFILE, PLACEMENT_CSV
from ingest.options import Options
from ingest.parsed import Format
from mapping import launchers
from mapping.launchers import NAME, task_map, write
from registry.errors import InvalidPlacement, InvalidValue, UnknownName
from registry.model import Allocation, Fabric, Placement
from tests.ingest.formats.test_placements import VECTORS, node_of_task
from tests.support.inputs import file, hosts_of
from tests.support.kubernetes import validated
from tests.support.small_fabrics import given_placement

HOST_FILES = ("openmpi-hostfile", "slurm-hostfile", "mpich-machinefile", "intel-machinefile")
READERS: dict[str, Format] = {"csv": PLACEMENT_CSV, **dict.fromkeys(HOST_FILES, HOSTFILE)}
READERS |= dict.fromkeys(("openmpi-rankfile", "prrte-rankfile"), OPENMPI_RANKFILE)
READERS |= {"mpich-rank-order": MPICH_RANK_ORDER, "flux-taskmap": FLUX_TASKMAP}
"""Formats that can say any placement, and what reads them."""
BY_BLOCKS = ("torchrun-rank-order", "deepspeed-hostfile")
"""Formats of launchers that give consecutive ranks to a host."""
UNNAMED = {"csv", "mpich-rank-order", "flux-taskmap"}
"""Formats that quote names or do without."""
LINE_A_RANK = {*READERS} - {"intel-machinefile", "mpich-rank-order", "flux-taskmap"}


def ring(names: Sequence[str], slots: Sequence[int]) -> Fabric:
    here = np.arange(len(names))
    ends = np.roll(here, -1)
    return Fabric.from_arcs(names, np.r_[here, ends], np.r_[ends, here], 1.0, slots=list(slots))


def placed(fabric: Fabric, hosts: Sequence[str], slots: Sequence[int], order: Sequence[int]) -> Placement:
    """Ranks on the slots of an allocation: rank `r` in slot ``order[r]``."""
    allocation = Allocation.of(fabric, hosts, slots)
    return given_placement(allocation, allocation.host_of_slot[list(order)])


FABRIC = ring(["a", "b", "c"], [2, 2, 2])
TURN = (2, 0, 3, 4, 1, 5)
"""Slot of each rank; not its own inverse."""
PLACEMENT = placed(FABRIC, ["b", "c", "a"], [2, 2, 2], TURN)


def read_back(format: str, text: str, options: Options | None = None) -> tuple[str, ...]:
    head = file(text, "exported").head()
    assert READERS[format].recognise(head, "exported") or len(text.splitlines()) == 1
    return hosts_of(READERS[format], text, options)


RANKFILE = (
    "rank 0=c slot=0\nrank 1=b slot=0\nrank 2=c slot=1\nrank 3=a slot=0\nrank 4=b slot=1\nrank 5=a slot=1\n"
)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("csv", "rank,host,slot\n0,c,0\n1,b,0\n2,c,1\n3,a,0\n4,b,1\n5,a,1\n"),
        ("openmpi-rankfile", RANKFILE),
        ("openmpi-hostfile", "c\nb\nc\na\nb\na\n"),
        ("slurm-hostfile", "c\nb\nc\na\nb\na\n"),
        ("mpich-machinefile", "c:1\nb:1\nc:1\na:1\nb:1\na:1\n"),
        ("mpich-rank-order", "# hosts b*2 c*2 a*2\n1,4,0,2,3,5\n"),
        ("prrte-rankfile", RANKFILE),
        ("intel-machinefile", "c:1\nb:1\nc:1\na:1\nb:1\na:1\n"),
        ("flux-taskmap", "[[1,1,1,1],[0,3,1,1],[0,1,1,1],[2,1,1,1]]\n"),
    ],
)
def test_files_of_a_placement_that_is_not_its_own_inverse(format: str, text: str) -> None:
    """A rank order lists the rank of each slot, not the slot of each rank."""
    assert [TURN[slot] for slot in TURN] != list(range(6))
    assert launchers.write(format, PLACEMENT, FABRIC) == text
    options = Options(hosts=("b", "c", "a")) if format == "flux-taskmap" else Options()
    assert read_back(format, text, options) == ("c", "b", "c", "a", "b", "a")


@st.composite
def placements(draw: st.DrawFn, *, full: bool = False) -> tuple[Fabric, Placement]:
    """Ranks on hosts with one to four slots, in any order; with `full`, no slot before the last is free."""
    slots = draw(st.lists(st.integers(1, 4), min_size=2, max_size=6))
    hosts = draw(st.permutations([f"node{i}" for i in range(len(slots))]))
    fabric = ring([f"node{i}" for i in range(len(slots))], slots)
    counts = [slots[int(name[4:])] for name in hosts]
    total = sum(counts)
    ranks = total if full else draw(st.integers(2, total))
    order = draw(st.permutations(range(total)))[:ranks]
    return fabric, placed(fabric, hosts, counts, order)


@pytest.mark.parametrize("format", READERS)
@given(st.data())
def test_what_is_written_reads_back_as_the_same_hosts(format: str, data: st.DataObject) -> None:
    fabric, placement = data.draw(placements(full=format == "mpich-rank-order"))
    text = launchers.write(format, placement, fabric)
    if format in LINE_A_RANK:
        assert len(text.splitlines()) == placement.ranks + (format == "csv")
    if format == "csv":
        slots = [(row["host"], int(row["slot"])) for row in csv.DictReader(io.StringIO(text))]
        for host, count in Counter(host for host, _ in slots).items():
            assert [slot for of, slot in slots if of == host] == list(range(count))  # by ascending rank
    assert text.endswith("\n")
    names = tuple(fabric.names[vertex] for vertex in placement.allocation.hosts)
    options = Options(hosts=names) if format == "flux-taskmap" else Options()
    assert read_back(format, text, options) == tuple(fabric.names[v] for v in placement.host_of_rank)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[Fabric, Placement]:
    """Consecutive ranks on each of some hosts, in any order of hosts; often as many on each."""
    count, equal = draw(st.integers(1, 6)), draw(st.booleans())
    slots = draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
    slots = slots[:1] * count if equal else slots
    names = [f"node{i}" for i in range(count)]
    fabric = ring([*names, "other"], [*slots, 1])
    order = draw(st.permutations(range(count)))
    hosts = np.repeat(np.array(order, np.int32), [slots[host] for host in order])
    return fabric, given_placement(Allocation.of(fabric, names, slots), hosts)


@given(blocks())
def test_torchrun_and_deepspeed_get_their_hosts_in_the_order_of_ranks(case: tuple[Fabric, Placement]) -> None:
    fabric, placement = case
    hosts = tuple(fabric.names[v] for v in placement.host_of_rank)
    text = launchers.write("deepspeed-hostfile", placement, fabric)
    assert hosts_of(HOSTFILE, text) == hosts
    if len(set(placement.allocation.slots.tolist())) == 1:
        nodes = launchers.write("torchrun-rank-order", placement, fabric).splitlines()
        assert hosts == tuple(node for node in nodes for _ in range(placement.ranks // len(nodes)))


@pytest.mark.parametrize("format", BY_BLOCKS)
def test_launchers_that_give_consecutive_ranks_refuse_other_placements(format: str) -> None:
    with pytest.raises(InvalidPlacement, match="the ranks of host c are not consecutive"):
        launchers.write(format, PLACEMENT, FABRIC)


def test_torchrun_starts_as_many_ranks_on_every_node() -> None:
    uneven = placed(FABRIC, ["a", "b"], [2, 2], (0, 1, 2))
    with pytest.raises(InvalidPlacement, match="host b has 1 ranks and a has 2"):
        launchers.write("torchrun-rank-order", uneven, FABRIC)
    assert launchers.write("deepspeed-hostfile", uneven, FABRIC) == "a slots=2\nb slots=1\n"


def test_runs_of_ranks_are_one_line_of_intels_machine_file() -> None:
    runs = placed(FABRIC, ["b", "a"], [2, 2], (0, 1, 2, 3))
    assert launchers.write("intel-machinefile", runs, FABRIC) == "b:2\na:2\n"


@pytest.mark.parametrize("text", VECTORS)
def test_task_maps_are_those_of_rfc_34(text: str) -> None:
    nodes = [int(name[1:]) for name in node_of_task(VECTORS[text])]
    assert json.dumps(task_map(nodes), separators=(",", ":")) == text


def test_a_rank_order_names_no_hosts_whose_names_do_not_fit() -> None:
    fabric = ring(["(0, 1)", "x"], [1, 1])
    turned = placed(fabric, ["(0, 1)", "x"], [1, 1], (1, 0))
    assert launchers.write("mpich-rank-order", turned, fabric) == "1,0\n"


def test_a_rank_order_cannot_leave_slots_free_but_on_the_last_host() -> None:
    half_used = placed(FABRIC, ["a", "b", "c"], [2, 2, 2], (0, 1, 2))
    assert launchers.write("mpich-rank-order", half_used, FABRIC) == "# hosts a*2 b*2\n0,1,2\n"
    gap = placed(FABRIC, ["a", "b", "c"], [2, 2, 2], (0, 2, 3))
    with pytest.raises(InvalidPlacement, match="host a has free slots before the last used host"):
        launchers.write("mpich-rank-order", gap, FABRIC)


@pytest.mark.parametrize("format", sorted({*launchers.FORMATS.names} - UNNAMED))
def test_host_names_that_would_break_the_file_are_refused(format: str) -> None:
    for name in ("a b", "a=b", "a:b", "a,b", "a\nb", "+n0", "a#b", "", "a\tb", "[a]", "ä"):
        fabric = ring(["x", name], [1, 1])
        with pytest.raises(InvalidPlacement, match="is not allowed in the file"):
            launchers.write(format, placed(fabric, ["x", name], [1, 1], (1, 0)), fabric)
    assert "x" in launchers.write(format, placed(fabric, ["x"], [1], (0,)), fabric)


def test_csv_quotes_what_it_must_and_refuses_what_would_break_a_line() -> None:
    fabric = ring(["x", "(0, 1)", "y\nz"], [1, 1, 1])
    written = launchers.write("csv", placed(fabric, ["(0, 1)", "x"], [1, 1], (0, 1)), fabric)
    assert read_back("csv", written) == ("(0, 1)", "x")
    with pytest.raises(InvalidPlacement, match="is not allowed in the file"):
        launchers.write("csv", placed(fabric, ["y\nz"], [1], (0,)), fabric)


@pytest.mark.parametrize("format", launchers.FORMATS.names)
def test_a_placement_of_another_fabric_is_refused(format: str) -> None:
    with pytest.raises(InvalidPlacement, match="belongs to another fabric"):
        launchers.write(format, PLACEMENT, ring(["a", "b"], [2, 2]))
    with pytest.raises(InvalidPlacement, match="b is a switch and cannot run ranks"):
        launchers.write(format, PLACEMENT, ring(["a", "b", "c"], [2, 0, 2]))


def test_a_placement_without_ranks_and_an_unknown_format_are_refused() -> None:
    with pytest.raises(InvalidPlacement, match="has no ranks"):
        launchers.write("csv", placed(FABRIC, ["a"], [2], ()), FABRIC)
    with pytest.raises(UnknownName, match="openmpi-rankfile"):
        launchers.write("rankfile", PLACEMENT, FABRIC)


def test_a_launch_line_has_the_ranks_the_hosts_and_the_quoted_file() -> None:
    found = placed(FABRIC, ["a", "b", "c"], [2, 2, 2], (2, 0, 1))
    lines = {name: launchers.launch_line(name, found, FABRIC, "my file") for name in launchers.FORMATS.names}
    assert lines == {
        "csv": None,
        "openmpi-rankfile": "mpirun --host a:2,b:1 --rankfile 'my file' -n 3 ./program",
        "openmpi-hostfile": "mpirun --hostfile 'my file' --map-by seq -n 3 ./program",
        "slurm-hostfile": "SLURM_HOSTFILE='my file' srun -n 3 --distribution arbitrary ./program",
        "mpich-machinefile": "mpiexec -f 'my file' -n 3 ./program",
        "mpich-rank-order": (
            "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE='my file' "
            "srun -n 3 --distribution block ./program"
        ),
        "prrte-rankfile": "mpirun --host a:2,b:1 --map-by rankfile:file='my file' -n 3 ./program",
        "intel-machinefile": "mpirun -machinefile 'my file' -n 3 ./program",
        "flux-taskmap": "flux run -N 3 -n 3 --taskmap=manual:\"$(cat 'my file')\" ./program",
        "torchrun-rank-order": (
            "torchrun --nnodes 2 --nproc-per-node 2 --node-rank "
            "$(($(grep -nxF \"$(hostname)\" 'my file' | cut -d: -f1) - 1)) "
            "--master-addr \"$(head -n 1 'my file')\" program.py   # on each host"
        ),
        "deepspeed-hostfile": "deepspeed --hostfile 'my file' program.py",
        "kubernetes-node-order": None,
        "mpijob": "kubectl create -f 'my file'",
    }


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
    (rule,) = term["matchExpressions"]
    assert rule == {"key": "kubernetes.io/hostname", "operator": "In", "values": ["c", "b", "a"]}
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
    words = [shell, option, script]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"--hostfile {tmp_path}/hosts --map-by seq -n 6 ./program\n"
    assert [WORKERS[worker] for worker in (tmp_path / "hosts").read_text().split()] == [*"cbcaba"]


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
