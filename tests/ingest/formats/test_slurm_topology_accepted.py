"""Slurm's controller starts with the topology.conf that is written of a fabric, and sees what was meant."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.formats.fabrics.slurm_topology import SLURM_TOPOLOGY, read_leaves
from ingest.formats.hostlists import expand
from ingest.generate.trees import three_level
from registry.exports.catalog import write
from registry.exports.trees import fold
from registry.model import Fabric
from tests.registry.exports.test_exports import below, host_distances, two_rails
from tests.support.inputs import fabric_of, read
from tests.support.launchers import require, slurm
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("processes")

FABRICS: dict[str, Callable[[], Fabric]] = {
    "a scan": lambda: fabric_of(IBNETDISCOVER, read("infiniband/fattree2-64-traffic/ibnetdiscover.txt")),
    "three levels": lambda: three_level(3, 2, 2),
    "rails and names with blanks": lambda: two_rails(
        ("n1", "ab"), ("n2", "a"), ("n3", "ab"), ("m4", "cd"), ("m5", "d"), ("login", "ad")
    ),
}


def require_version(first: tuple[int, int]) -> None:
    """Skip the test if the installed Slurm is older."""
    require("slurmctld", "scontrol")
    said = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=True).stdout
    major, minor = said.split()[-1].split(".")[:2]
    if (int(major), int(minor)) < first:
        pytest.skip(f"{said.strip()} is older than {first[0]}.{first[1]:02}")


def print_topology(environment: Mapping[str, str]) -> str:
    """Return what ``scontrol show topology`` prints."""
    command, variables = ["scontrol", "show", "topology"], {**os.environ, **environment}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown(folder: Path, fabric: Fabric, more: str = "") -> list[dict[str, str]]:
    """Return the lines of ``scontrol show topology`` with a topology that is in a folder."""
    hosts = fold(fabric.names[host] for host in fabric.hosts)
    with slurm(folder, hosts, expand(hosts), 2, more=more, daemons_too=False) as running:
        lines = print_topology(running.environment).splitlines()
    return [dict(word.split("=", 1) for word in line.split()) for line in lines if line]


@pytest.mark.parametrize("name", FABRICS)
def test_slurm_takes_the_blocks_of_an_observed_fabric(name: str, tmp_path: Path) -> None:
    """Tried by hand with 24.11.5 and 26.05.5; topology/block came with 23.11."""
    require_version((23, 11))
    fabric = FABRICS[name]()
    (tmp_path / "topology.conf").write_text(write("slurm-block", fabric))
    found = shown(tmp_path, fabric, "TopologyPlugin=topology/block\n")
    blocks = read_leaves(tmp_path / "topology.conf")
    assert [expand(one["Nodes"]) for one in found if "BlockName" in one] == list(blocks)


@pytest.mark.parametrize("name", FABRICS)
def test_slurm_takes_the_topology_yaml_of_an_observed_fabric(name: str, tmp_path: Path) -> None:
    """Tried by hand with 26.05.5; topology.yaml came with 25.05."""
    require_version((25, 5))
    fabric = FABRICS[name]()
    (tmp_path / "topology.yaml").write_text(write("slurm-topology-yaml", fabric))
    found = shown(tmp_path, fabric)
    leaves = [expand(one["Nodes"]) for one in found if one.get("Level") == "0"]
    assert leaves == list(read_leaves(tmp_path / "topology.yaml"))


@pytest.mark.parametrize("name", FABRICS)
def test_slurm_takes_the_topology_of_an_observed_fabric(name: str, tmp_path: Path) -> None:
    require("slurmctld", "scontrol")
    fabric = FABRICS[name]()
    hosts = fold(fabric.names[host] for host in fabric.hosts)
    written = write("slurm-topology", fabric)
    with slurm(tmp_path, hosts, expand(hosts), 2, topology=written, daemons_too=False) as running:
        found = print_topology(running.environment)
    printed, meant = fabric_of(SLURM_TOPOLOGY, found), fabric_of(SLURM_TOPOLOGY, written)
    assert below(printed) == below(meant)
    assert host_distances(printed) == host_distances(meant)
    log = (tmp_path / "slurmctld.log").read_text().replace(str(tmp_path), "").lower()
    said = [line for line in log.splitlines() if "error" in line or "warn" in line]
    assert not [line for line in said if "topology" in line or "switch" in line]
