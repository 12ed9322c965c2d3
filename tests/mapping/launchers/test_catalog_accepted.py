"""Exports are accepted by the launchers themselves: each rank prints the host that it was placed on."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.formats.hosts.hwloc_xml import read_layout
from ingest.formats.placements import openmpi_map
from ingest.options import Options
from ingest.reading.source import read_paths
from mapping.launchers.catalog import launch_line, write
from mapping.placement.strategies.baselines import in_order
from registry.model import Allocation, Fabric, Placement
from tests.support import paths
from tests.support.launchers import (
    HYDRA_ON_LOOPBACK,
    OPEN_MPI_ON_LOOPBACK,
    Slurm,
    agent,
    printed,
    require,
    slurm,
)

NODES = ("node0001", "node0002", "node0003")
RANKS = {0: "node0002", 1: "node0001", 2: "node0003", 3: "node0001", 4: "node0002"}
DATA = paths.DATA
SCAN = DATA / "infiniband" / "fattree2-64-traffic" / "ibnetdiscover.txt"
OPEN_MPI = ("sh", "-c", 'echo "$OMPI_COMM_WORLD_RANK $(hostname)"')
HYDRA = ("sh", "-c", 'echo "$PMI_RANK $(hostname)"')
SLURM = ("sh", "-c", 'echo "$SLURM_PROCID $SLURMD_NODENAME"')
"""What each rank prints, by launcher."""
CORES = (1, 1, 0, 0, 0)
"""Core of each rank: not the order in which any launcher would take them."""
BOUND = {rank: f"{host}:{CORES[rank]}" for rank, host in RANKS.items()}
BOUND_TO = "grep Cpus_allowed_list /proc/self/status | cut -f 2"
"""Shell command that prints the CPUs that a process may run on."""


def placement() -> tuple[Fabric, Placement]:
    """Five ranks on three hosts of two slots, as no launcher would put them by itself."""
    fabric = Fabric.from_arcs([*NODES, "s"], [0, 1, 2, 3, 3, 3], [3, 3, 3, 0, 1, 2], 1.0, slots=[2, 2, 2, 0])
    hosts = np.array([NODES.index(host) for host in RANKS.values()], np.int32)
    return fabric, replace(in_order(5, Allocation.of(fabric, NODES, 2)), host_of_rank=hosts)


def written(folder: Path, format: str, cores: Sequence[int] | None = None) -> Path:
    fabric, found = placement()
    if cores is not None:
        found = replace(found, core_of_rank=np.array(cores), cpu_of_rank=np.array(cores))
    path = folder / format
    path.write_text(write(format, found, fabric))
    return path


def launch_words(folder: Path, format: str) -> list[str]:
    """Write a file and return the words of its launch line."""
    line = launch_line(format, placement()[1], placement()[0], str(written(folder, format)))
    assert line is not None
    return shlex.split(line)


def two_processors() -> None:
    """Skip a test that binds ranks to CPUs 0 and 1 where these are not there."""
    if not {0, 1} <= os.sched_getaffinity(0):
        pytest.skip("ranks are bound to CPUs 0 and 1: both are needed")


@pytest.fixture
def openmpi(tmp_path: Path) -> list[object]:
    """Open MPI's launcher, whose hosts are names on this machine."""
    require("mpirun.openmpi")
    return [
        *("mpirun.openmpi", "--allow-run-as-root", *OPEN_MPI_ON_LOOPBACK),
        *("--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent(tmp_path)),
    ]


def test_open_mpi_takes_the_rankfile(openmpi: list[object], tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{node} slots=2\n" for node in NODES))
    files = ["--hostfile", hosts, "--rankfile", written(tmp_path, "openmpi-rankfile")]
    two_processors()
    command = [*openmpi, *files, "-n", 5, *OPEN_MPI]
    assert printed(command) == RANKS


def test_open_mpi_binds_ranks_to_the_cores_of_the_rankfile(openmpi: list[object], tmp_path: Path) -> None:
    two_processors()
    hosts = written(tmp_path, "openmpi-hostfile")  # its lines are counted as slots
    files = ["--hostfile", hosts, "--rankfile", written(tmp_path, "openmpi-rankfile", CORES)]
    show = ("sh", "-c", f'echo "$OMPI_COMM_WORLD_RANK $(hostname):$({BOUND_TO})"')
    assert printed([*openmpi, *files, "-n", 5, *show]) == BOUND


def test_open_mpi_counts_cores_in_the_logical_order_of_hwloc(openmpi: list[object], tmp_path: Path) -> None:
    # A topology of two packages whose CPUs alternate: core 1 is CPU 2, which may not be there.
    require("lstopo-no-graphics")
    topology, hosts, file = tmp_path / "topology.xml", tmp_path / "hosts", tmp_path / "ranks"
    synthetic = "pack:2 numa:1 core:2 pu:1(indexes=0,2,1,3)"
    subprocess.run(["lstopo-no-graphics", "-i", synthetic, "--of", "xml", topology], check=True)
    (layout,) = read_paths([topology])[0].files
    assert read_layout(layout).core_cpu.tolist() == [0, 2, 1, 3]
    hosts.write_text("node0001 slots=4\n")
    file.write_text("rank 0=node0001 slot=1\n")
    show = ("sh", "-c", f'echo "bound to $({BOUND_TO})"')
    command = [*openmpi, "--mca", "hwloc_base_topo_file", topology, "--hostfile", hosts, "--rankfile", file]
    done = subprocess.run([*map(str, command), *show], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "bound to 2\n" in done.stdout or 'for bitmap "2"' in done.stderr


def test_open_mpi_takes_the_host_file_for_its_sequential_mapping(
    openmpi: list[object], tmp_path: Path
) -> None:
    files = ["--hostfile", written(tmp_path, "openmpi-hostfile"), "--map-by", "seq"]
    command = [*openmpi, *files, "-n", 5, *OPEN_MPI]
    assert printed(command) == RANKS


@pytest.mark.parametrize("format", ["openmpi-rankfile", "openmpi-hostfile"])
def test_open_mpi_runs_the_launch_line(format: str, openmpi: list[object], tmp_path: Path) -> None:
    two_processors()
    program, *words, last = launch_words(tmp_path, format)
    assert (program, last) == ("mpirun", "./program")
    assert printed([*openmpi, *words, *OPEN_MPI]) == RANKS


def test_mpich_runs_the_launch_line(tmp_path: Path) -> None:
    require("mpiexec.hydra")
    program, *words, last = launch_words(tmp_path, "mpich-machinefile")
    assert (program, last) == ("mpiexec", "./program")
    remote = ("-launcher", "ssh", "-launcher-exec", agent(tmp_path))
    assert printed(["mpiexec.hydra", *HYDRA_ON_LOOPBACK, *remote, *words, *HYDRA]) == RANKS


def test_mpich_takes_the_machine_file(tmp_path: Path) -> None:
    require("mpiexec.hydra")
    command = [
        "mpiexec.hydra", *HYDRA_ON_LOOPBACK, "-launcher", "ssh", "-launcher-exec", agent(tmp_path),
        "-f", written(tmp_path, "mpich-machinefile"), "-n", 5, *HYDRA,
    ]  # fmt: skip
    assert printed(command) == RANKS


def test_mpich_binds_ranks_to_the_cpus_of_the_machine_file(tmp_path: Path) -> None:
    require("mpiexec.hydra")
    two_processors()
    show = ("sh", "-c", f'echo "$PMI_RANK $(hostname):$({BOUND_TO})"')
    command = [
        "mpiexec.hydra", *HYDRA_ON_LOOPBACK, "-launcher", "ssh", "-launcher-exec", agent(tmp_path),
        "-f", written(tmp_path, "mpich-machinefile", CORES), "-n", 5, *show,
    ]  # fmt: skip
    assert printed(command) == BOUND


def test_mpich_binds_runs_of_ranks_on_one_host(tmp_path: Path) -> None:
    require("mpiexec.hydra")
    two_processors()
    fabric, found = placement()
    ranks = np.array([1, 1, 0, 0], np.int32)
    cores = np.array([1, 0, 1, 0], np.int32)
    found = replace(found, host_of_rank=ranks, core_of_rank=cores, cpu_of_rank=cores)
    path = tmp_path / "machines"
    path.write_text(write("mpich-machinefile", found, fabric))
    show = ("sh", "-c", f'echo "$PMI_RANK $(hostname):$({BOUND_TO})"')
    command = [
        "mpiexec.hydra", *HYDRA_ON_LOOPBACK, "-launcher", "ssh", "-launcher-exec", agent(tmp_path),
        "-f", path, "-n", 4, *show,
    ]  # fmt: skip
    assert printed(command) == {0: "node0002:1", 1: "node0002:0", 2: "node0001:1", 3: "node0001:0"}


def test_mpich_takes_the_lines_of_intels_machine_file(tmp_path: Path) -> None:
    require("mpiexec.hydra")
    fabric, found = placement()
    found = replace(found, host_of_rank=np.array([2, 0, 0, 1, 1, 2], np.int32))
    path = tmp_path / "machines"
    path.write_text(write("intel-machinefile", found, fabric))
    assert path.read_text() == "node0003:1\nnode0001:2\nnode0002:2\nnode0003:1\n"
    command = [
        "mpiexec.hydra", *HYDRA_ON_LOOPBACK, "-launcher", "ssh", "-launcher-exec", agent(tmp_path),
        "-f", path, "-n", 6, *HYDRA,
    ]  # fmt: skip
    assert printed(command) == dict(enumerate(NODES[host] for host in (2, 0, 0, 1, 1, 2)))


@pytest.mark.parametrize("report", ["--display-map", "--display-devel-map", "--report-bindings"])
def test_open_mpi_reports_the_placement_that_it_was_given(
    openmpi: list[object], tmp_path: Path, report: str
) -> None:
    two_processors()
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{node} slots=2\n" for node in NODES))
    files = ["--hostfile", hosts, "--rankfile", written(tmp_path, "openmpi-rankfile"), "-n", 5, report]
    done = subprocess.run([*map(str, [*openmpi, *files]), "true"], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (said,) = (text for text in (done.stdout, done.stderr) if b"node0001" in text)
    (tmp_path / "said").write_bytes(said)
    (group,) = read_paths([tmp_path / "said"])
    assert openmpi_map.recognise(group.files[0].head(), "said")
    order = openmpi_map.parse(group.files, Options()).placements[0]
    assert order is not None
    assert dict(enumerate(order.hosts)) == RANKS


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Slurm on three nodes of two slots."""
    require("slurmctld", "slurmd", "srun", "salloc")
    with slurm(tmp_path_factory.mktemp("slurm"), "node[0001-0003]", NODES, 2) as running:
        yield running


def test_slurm_runs_the_launch_line(scheduler: Slurm, tmp_path: Path) -> None:
    variable, *words, last = launch_words(tmp_path, "slurm-hostfile")
    assert last == "./program"
    name, _, value = variable.partition("=")
    assert printed([*words, *SLURM], {**scheduler.environment, name: value}) == RANKS


def test_slurm_takes_the_host_file(scheduler: Slurm, tmp_path: Path) -> None:
    environment = {**scheduler.environment, "SLURM_HOSTFILE": str(written(tmp_path, "slurm-hostfile"))}
    assert printed(["srun", "-n", 5, "--distribution", "arbitrary", *SLURM], environment) == RANKS


def test_slurm_ranks_bind_themselves_by_the_columns_of_the_csv(scheduler: Slurm, tmp_path: Path) -> None:
    two_processors()
    environment = {**scheduler.environment, "SLURM_HOSTFILE": str(written(tmp_path, "slurm-hostfile"))}
    table = written(tmp_path, "csv", CORES)
    cpu = f"$(awk -F, -v rank=$SLURM_PROCID '$1 == rank {{print $5}}' {table})"
    show = f"""taskset --cpu-list {cpu} sh -c 'echo "$SLURM_PROCID $SLURMD_NODENAME:$({BOUND_TO})"'"""
    command = ["srun", "-n", 5, "--distribution", "arbitrary", "sh", "-c", show]
    assert printed(command, environment) == BOUND


def test_a_job_script_places_its_own_ranks_and_launches_them_so(scheduler: Slurm, tmp_path: Path) -> None:
    profile, hosts = tmp_path / "cross.csv", tmp_path / "hosts"
    profile.write_text("src,dst,bytes\n0,4,1000\n1,3,1000\n2,0,1\n")
    script = tmp_path / "job.sh"
    script.write_text(
        f"""#!/bin/sh
{sys.executable} -c 'from almanac.cli import main; main()' map {profile} --here --fabric {SCAN} \\
    --steps 3000 --objective hop-bytes --export slurm-hostfile={hosts} \\
    > {tmp_path}/output || exit 1
SLURM_HOSTFILE={hosts} srun --distribution arbitrary -n $SLURM_NTASKS \\
    sh -c 'echo "$SLURM_PROCID $SLURMD_NODENAME"'
"""
    )
    script.chmod(0o755)
    found = printed(["salloc", "--quiet", "-n", 5, "-N", 3, script], scheduler.environment)
    assert [found[rank] for rank in range(5)] == hosts.read_text().split()
    assert found[0] == found[4]
    assert found[1] == found[3]


def test_an_open_mpi_job_finds_the_hosts_that_it_was_given(openmpi: list[object], tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{node} slots=2\n" for node in NODES))
    show = (
        "from almanac.job_environment import read_environment as read; "
        "e = read(); print(0, ','.join(map(str, e.hosts + e.slots)))"
    )
    command = [*openmpi, "--mca", "orte_default_hostfile", hosts, "-n", 1, sys.executable, "-c", show]
    assert printed(command) == {0: "node0001,node0002,node0003,2,2,2"}
