"""Whatever is wrong with a run, the job runs in its own order, or the launcher's own error comes back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from registry.registry import Registry
from tests.almanac.commands.placing.test_run_measured import MAIN, filled
from tests.support import paths
from tests.support.launchers import HYDRA_ON_LOOPBACK, OPEN_MPI_ON_LOOPBACK, agent, require

__all__ = ["filled"]

OPEN_MPI, HYDRA = "mpirun.openmpi", "mpiexec.hydra"
PROGRAM = ("sh", "-c", 'echo "${OMPI_COMM_WORLD_RANK-$PMI_RANK} $(hostname)"')
"""Prints the rank and its host."""
IN_ORDER = ["0 node00", "1 node00", "2 node01", "3 node01"]
OTHER_VERSION = """#!/bin/sh
[ "$1" != --version ] || {{ echo "{version}"; exit; }}
exec mpirun.openmpi "$@"
"""


def command(
    folder: Path, name: str = OPEN_MPI, hosts: str = "node00:2,node01:2", ranks: int = 4
) -> list[str]:
    if name == HYDRA:
        require(HYDRA)
        words = [HYDRA, *HYDRA_ON_LOOPBACK, "-launcher", "ssh", "-launcher-exec", str(agent(folder))]
        return [*words, "-hosts", hosts, "-n", str(ranks), *PROGRAM]
    require(OPEN_MPI)
    words = [name, "--allow-run-as-root", *OPEN_MPI_ON_LOOPBACK, "--oversubscribe"]
    words += ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", str(agent(folder))]
    return [*words, "--host", hosts, "-n", str(ranks), *PROGRAM]


def start(
    launcher: Sequence[str], *options: str, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", MAIN, "run", "--seconds", "120", *options, *launcher]
    return subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=paths.ROOT,
        env={**os.environ, **(environment or {})},
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    """The exit code, the lines printed by the ranks in their order, and the messages."""
    printed, said = process.communicate(timeout=300)
    return process.returncode, sorted(printed.splitlines()), said


@pytest.mark.parametrize("name", [OPEN_MPI, HYDRA])
@pytest.mark.parametrize(
    ("hosts", "ranks", "reason"),
    [("other00:2,other01:2", 4, "other00"), ("node00:2,node01:1", 3, "has 4 ranks, this run has 3")],
    ids=["hosts not in the fabric", "profile of another size"],
)
def test_a_job_that_does_not_fit_runs_in_its_own_order(
    filled: Registry, tmp_path: Path, name: str, hosts: str, ranks: int, reason: str
) -> None:
    code, lines, said = ended(start(command(tmp_path, name, hosts, ranks), "--profile", "pairs"))
    names = [one for host in hosts.split(",") for one in [host[:-2]] * int(host[-1])]
    assert (code, lines) == (0, [f"{rank} {host}" for rank, host in enumerate(names)]), said
    assert "not placed: " in said
    assert reason in said


def test_another_number_of_ranks_than_before_runs_in_order(filled: Registry, tmp_path: Path) -> None:
    words = command(tmp_path, HYDRA, "node00:2,node01:1", 3)
    code, lines, said = ended(start(words, "--name", "wrf", "--explain"))
    assert (code, lines) == (0, IN_ORDER[:3]), said
    assert "no profile of wrf with 3 ranks is stored" in said


def test_a_launcher_that_is_not_there_is_the_error_of_a_shell(filled: Registry, tmp_path: Path) -> None:
    missing = str(tmp_path / "mpirun")
    code, lines, said = ended(start(command(tmp_path, missing), "--profile", "pairs"))
    assert (code, lines) == (127, [])
    assert f"{missing}: No such file or directory" in said.splitlines()


@pytest.mark.parametrize("version", ["mpirun (Open MPI) 17.0", "something else"])
def test_a_launcher_of_an_unknown_version_runs_the_job(
    filled: Registry, tmp_path: Path, version: str
) -> None:
    path = tmp_path / "mpirun"
    path.write_text(OTHER_VERSION.format(version=version))
    path.chmod(0o755)
    code, lines, said = ended(start(command(tmp_path, str(path)), "--profile", "pairs"))
    assert (code, lines) == (0, IN_ORDER), said
    assert f"is not known here: it prints '{version}'" in said


def test_an_order_that_the_launcher_refuses_does_not_cost_the_job(filled: Registry, tmp_path: Path) -> None:
    words = command(tmp_path)
    words[1:1] = ["--mca", "rmaps", "^seq,rank_file"]  # without what places each rank
    assert ended(start(words, "--profile", "pairs", "--in-order"))[:2] == (0, IN_ORDER)
    code, lines, said = ended(start(words, "--profile", "pairs"))
    assert (code, lines) == (0, IN_ORDER), said
    assert "not placed: where the launcher starts ranks could not be seen: mpirun.openmpi ended" in said


def test_two_runs_at_once_are_both_placed_and_stored(filled: Registry, tmp_path: Path) -> None:
    both = [start(command(tmp_path), "--profile", "pairs") for _ in range(2)]
    for code, lines, said in [ended(one) for one in both]:
        assert (code, lines) == (0, ["0 node00", "1 node01", "2 node00", "3 node01"]), said
    runs = filled.measured_runs.list("toy", "wrf")
    assert [run.exit_code for run in runs] == [0, 0]
    assert len({run.placement for run in runs}) == 1
