"""Real launchers on pretended hosts, and a placement as none of them would choose it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mapping.launchers import launch_line, write
from mapping.placement.methods.baselines import in_order
from registry.model import Allocation, Fabric, Placement
from tests.support import paths
from tests.support.launchers import HYDRA_ON_LOOPBACK, OPEN_MPI_ON_LOOPBACK, Slurm, agent, require, slurm
from tests.support.small_fabrics import cabled
from tests.support.sure import sure

NODES = ("node0001", "node0002", "node0003")
HOSTS = ("node0002", "node0001", "node0003", "node0001", "node0002")
RANKS = dict(enumerate(HOSTS))
DATA = paths.DATA
SCAN = DATA / "infiniband" / "fattree2-64-traffic" / "ibnetdiscover.txt"
OPEN_MPI = ("sh", "-c", 'echo "$OMPI_COMM_WORLD_RANK $(hostname)"')
HYDRA = ("sh", "-c", 'echo "$PMI_RANK $(hostname)"')
SLURM = ("sh", "-c", 'echo "$SLURM_PROCID $SLURMD_NODENAME"')
"""What each rank prints, by launcher."""
CORES = (1, 1, 0, 0, 0)
"""Core of each rank: not the order in which any launcher would take them."""
BOUND = {rank: f"{host}:{CORES[rank]}" for rank, host in RANKS.items()}


def placement(ranks: Sequence[str] = HOSTS) -> tuple[Fabric, Placement]:
    """Ranks on three hosts of two slots, by default as no launcher would put them by itself."""
    fabric = replace(cabled("0-3 1-3 2-3", 3, slots=2), names=(*NODES, "s"))
    hosts = np.array([NODES.index(host) for host in ranks], np.int32)
    return fabric, replace(in_order(len(ranks), Allocation.of(fabric, NODES, 2)), host_of_rank=hosts)


def written(
    folder: Path, format: str, cores: Sequence[int] | None = None, ranks: Sequence[str] = HOSTS
) -> Path:
    fabric, found = placement(ranks)
    if cores is not None:
        found = replace(found, core_of_rank=np.array(cores), cpu_of_rank=np.array(cores))
    path = folder / format
    path.write_text(write(format, found, fabric))
    return path


def launch_words(folder: Path, format: str, program: str) -> list[str]:
    """Write a file and return the words of its launch line between the launcher and the program."""
    line = sure(launch_line(format, placement()[1], placement()[0], str(written(folder, format))))
    first, *words, last = shlex.split(line)
    assert (first.partition("=")[0], last) == (program, "./program")
    return [first, *words]


def bound(rank: str, host: str) -> tuple[str, ...]:
    """The words of a program that prints rank, host and the CPUs that it may run on."""
    return "sh", "-c", f'echo "{rank} {host}:$(grep Cpus_allowed_list /proc/self/status | cut -f 2)"'


@pytest.fixture
def two_processors() -> None:
    """Skip a test that binds ranks to CPUs 0 and 1 where these are not there."""
    if not {0, 1} <= os.sched_getaffinity(0):
        pytest.skip("ranks are bound to CPUs 0 and 1: both are needed")


@pytest.fixture
def openmpi(processes: None, tmp_path: Path) -> list[object]:
    require("mpirun.openmpi")
    return [
        *("mpirun.openmpi", "--allow-run-as-root", *OPEN_MPI_ON_LOOPBACK),
        *("--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent(tmp_path)),
    ]


@pytest.fixture
def hydra(processes: None, tmp_path: Path) -> list[object]:
    require("mpiexec.hydra")
    return ["mpiexec.hydra", *HYDRA_ON_LOOPBACK, "-launcher", "ssh", "-launcher-exec", agent(tmp_path)]


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    path = tmp_path / "hosts"
    path.write_text("".join(f"{node} slots=2\n" for node in NODES))
    return path


@pytest.fixture(scope="session")
def scheduler(processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    require("slurmctld", "slurmd", "srun", "salloc")
    with slurm(tmp_path_factory.mktemp("slurm"), "node[0001-0003]", NODES, 2) as running:
        yield running
