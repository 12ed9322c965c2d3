"""Exports are accepted by the launchers themselves: each rank prints the host that it was placed on."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ingest.formats.hwloc_xml import read_layout
from ingest.formats.placements import OPENMPI_MAP
from ingest.options import Options
from ingest.reading.source import read_paths
from tests.mapping.launchers.conftest import BOUND, CORES, HOSTS, HYDRA, NODES, RANKS, SCAN, bound, written
from tests.support.launchers import Slurm, printed, require
from tests.support.sure import sure
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("processes")


def test_open_mpi_binds_by_the_rankfile(openmpi: list[object], tmp_path: Path, two_processors: None) -> None:
    hosts = written(tmp_path, "openmpi-hostfile")  # its lines are counted as slots
    files = ["--hostfile", hosts, "--rankfile", written(tmp_path, "openmpi-rankfile", CORES)]
    assert printed([*openmpi, *files, "-n", 5, *bound("$OMPI_COMM_WORLD_RANK", "$(hostname)")]) == BOUND


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
    command = [*openmpi, "--mca", "hwloc_base_topo_file", topology, "--hostfile", hosts, "--rankfile", file]
    words = [*map(str, command), *bound("bound", "to")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert "bound to:2\n" in done.stdout or 'for bitmap "2"' in done.stderr


@pytest.mark.parametrize("report", [("--display-map", "--report-bindings"), ("--display-devel-map",)])
def test_open_mpi_reports_the_placement_that_it_was_given(
    openmpi: list[object], tmp_path: Path, hosts: Path, two_processors: None, report: tuple[str, ...]
) -> None:
    """The map is printed, the bindings are an error message."""
    files = ["--hostfile", hosts, "--rankfile", written(tmp_path, "openmpi-rankfile"), "-n", 5]
    words = [*map(str, [*openmpi, *files]), *report, "true"]
    done = subprocess.run(words, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    printed_reports = [text for text in (done.stdout, done.stderr) if b"node0001" in text]
    assert len(printed_reports) == len(report)
    for text in printed_reports:
        (tmp_path / "report").write_bytes(text)
        (group,) = read_paths([tmp_path / "report"])
        assert OPENMPI_MAP.recognise(group.files[0].head(), "report")
        order = sure(OPENMPI_MAP.parse(group.files, Options()).placements[0])
        assert dict(enumerate(order.hosts)) == RANKS


def test_an_open_mpi_job_finds_the_hosts_that_it_was_given(openmpi: list[object], hosts: Path) -> None:
    show = (
        "from almanac.job_environment import read_environment as read; "
        "e = read(); print(0, ','.join(map(str, e.hosts + e.slots)))"
    )
    command = [*openmpi, "--mca", "orte_default_hostfile", hosts, "-n", 1, sys.executable, "-c", show]
    assert printed(command) == {0: "node0001,node0002,node0003,2,2,2"}


RUNS = ("node0002", "node0002", "node0001", "node0001")


@pytest.mark.parametrize(("ranks", "cores"), [(HOSTS, CORES), (RUNS, (1, 0, 1, 0))], ids=["apart", "runs"])
def test_mpich_binds_ranks_to_the_cpus_of_the_machine_file(
    ranks: tuple[str, ...], cores: tuple[int, ...], hydra: list[object], tmp_path: Path, two_processors: None
) -> None:
    command = [*hydra, "-f", written(tmp_path, "mpich-machinefile", cores, ranks), "-n", len(ranks)]
    expected = {rank: f"{host}:{cores[rank]}" for rank, host in enumerate(ranks)}
    assert printed([*command, *bound("$PMI_RANK", "$(hostname)")]) == expected


def test_mpich_takes_the_lines_of_intels_machine_file(hydra: list[object], tmp_path: Path) -> None:
    ranks = [NODES[host] for host in (2, 0, 0, 1, 1, 2)]
    path = written(tmp_path, "intel-machinefile", ranks=ranks)
    assert path.read_text() == "node0003:1\nnode0001:2\nnode0002:2\nnode0003:1\n"
    assert printed([*hydra, "-f", path, "-n", 6, *HYDRA]) == dict(enumerate(ranks))


def test_slurm_binds_ranks_by_the_csv(scheduler: Slurm, tmp_path: Path, two_processors: None) -> None:
    environment = {**scheduler.environment, "SLURM_HOSTFILE": str(written(tmp_path, "slurm-hostfile"))}
    table = written(tmp_path, "csv", CORES)
    cpu = f"$(awk -F, -v rank=$SLURM_PROCID '$1 == rank {{print $5}}' {table})"
    show = f"taskset --cpu-list {cpu} {shlex.join(bound('$SLURM_PROCID', '$SLURMD_NODENAME'))}"
    command = ["srun", "-n", 5, "--distribution", "arbitrary", "sh", "-c", show]
    assert printed(command, environment) == BOUND


def test_a_job_script_places_its_own_ranks_and_launches_them_so(scheduler: Slurm, tmp_path: Path) -> None:
    profile, hosts = tmp_path / "cross.csv", tmp_path / "hosts"
    profile.write_text("src,dst,bytes\n0,4,1000\n1,3,1000\n2,0,1\n")
    script = tmp_path / "job.sh"
    script.write_text(
        f"""#!/bin/sh
if {sys.executable} -c 'from almanac.cli import main; main()' map {profile} --here --fabric {SCAN} \\
    --steps 300 --objective hop-bytes --export slurm-hostfile={hosts} > {tmp_path}/output; then
    export SLURM_HOSTFILE={hosts} SLURM_DISTRIBUTION=arbitrary
fi
srun -n $SLURM_NTASKS sh -c 'echo "$SLURM_PROCID $SLURMD_NODENAME"'
"""
    )
    script.chmod(0o755)
    found = printed(["salloc", "--quiet", "-n", 5, "-N", 3, script], scheduler.environment)
    assert [found[rank] for rank in range(5)] == hosts.read_text().split()
    assert found[0] == found[4]
    assert found[1] == found[3]
