"""Where a launcher's command will run: its options first, else the job's environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from almanac.running.call import Unplaced, parse_call
from almanac.running.hosts import hosts_of
from almanac.running.launchers import LAUNCHERS, Launcher

OPEN_MPI, _, _, MPICH, _, SLURM, _, DEEPSPEED = LAUNCHERS
JOB = {"SLURM_JOB_NODELIST": "n[1-4]", "SLURM_TASKS_PER_NODE": "2(x4)", "SLURM_NTASKS": "8"}


def found(launcher: Launcher, words: str, environment: dict[str, str] | None = None) -> tuple[object, ...]:
    job = hosts_of(parse_call(words.split(), launcher.values), launcher, environment or {})
    return job.hosts, job.slots, job.ranks


@pytest.mark.parametrize(
    ("launcher", "words", "expected"),
    [
        (OPEN_MPI, "mpirun -n 3 --host b:2,a:2 x", (("b", "a"), (2, 2), 3)),
        (OPEN_MPI, "mpirun --host b,a,b x", (("b", "a"), (2, 1), 3)),
        (OPEN_MPI, "mpirun --npernode 4 --host a,b x", (("a", "b"), (4, 4), 8)),
        (MPICH, "mpiexec -ppn 2 -hosts a,b -n 4 x", (("a", "b"), (2, 2), 4)),
    ],
)
def test_hosts_of_the_command(launcher: Launcher, words: str, expected: object) -> None:
    assert found(launcher, words, JOB) == expected


def test_hosts_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("b slots=3\na slots=1\n")
    assert found(OPEN_MPI, f"mpirun -n 4 --hostfile {file} x") == (("b", "a"), (3, 1), 4)
    assert found(DEEPSPEED, f"deepspeed -H {file} x", JOB) == (("b", "a"), (3, 1), 4)
    file.write_text("b:3\na:1\n")
    assert found(MPICH, f"mpiexec -n 2 -f {file} x") == (("b", "a"), (3, 1), 2)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("srun x", (("n1", "n2", "n3", "n4"), (2, 2, 2, 2), 8)),
        ("srun -n 4 -N 2 x", (("n1", "n2"), (2, 2), 4)),
        ("srun -N 2 x", (("n1", "n2"), (2, 2), 4)),
        ("srun --ntasks=3 x", (("n1", "n2", "n3", "n4"), (2, 2, 2, 2), 3)),
    ],
)
def test_a_step_runs_on_hosts_of_its_job(words: str, expected: object) -> None:
    assert found(SLURM, words, JOB) == expected


@pytest.mark.parametrize(
    ("launcher", "words", "reason"),
    [
        (OPEN_MPI, "mpirun --map-by node --host a:2 -n 2 x", "--map-by is given"),
        (OPEN_MPI, "mpirun --rankfile f --host a:2 -n 2 x", "--rankfile is given"),
        (SLURM, "srun -m cyclic x", "-m is given"),
        (SLURM, "srun -w n3 x", "-w is given"),
        (OPEN_MPI, "mpirun --host a -n 1 x : -n 1 y", "several programs"),
        (OPEN_MPI, "mpirun --host a:2 -n 3 x", "3 ranks are more than the 2 slots"),
        (SLURM, "srun -N 5 x", "5 hosts are asked for, and the job has 4"),
        (OPEN_MPI, "mpirun --host a --hostfile f x", "given twice"),
        (OPEN_MPI, "mpirun --host a:b x", "'a:b' is no host"),
        (OPEN_MPI, "mpirun --hostfile /no/such/file x", "cannot be read"),
    ],
)
def test_what_decides_or_does_not_fit_is_a_reason(launcher: Launcher, words: str, reason: str) -> None:
    with pytest.raises(Unplaced, match=reason):
        found(launcher, words, JOB)


def test_without_hosts_there_is_nothing_to_place_on() -> None:
    with pytest.raises(Unplaced, match=r"not inside a job.*name hosts and slots"):
        found(OPEN_MPI, "mpirun -n 2 x")
