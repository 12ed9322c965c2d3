"""`sacct -P`: steps belong to jobs, columns may come in any order."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ingest.formats.jobs import slurm_sacct
from registry.model import Job
from tests.support.inputs import parse, read, refusal

REAL = read("slurm/sacct_P.txt")
HEAD = "JobID|JobName|NNodes|NTasks|AllocCPUS|State|Start|End|NodeList|Layout"
JOB = "7|halo|2||16|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|node[1-2]|"
STEP = "7.0|halo|2|12|16|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|node[1-2]|Cyclic"


def jobs(*lines: str) -> dict[str, Job]:
    return {job.id: job for job in parse(slurm_sacct, "\n".join(lines) + "\n").jobs}


def test_jobs_of_a_real_cluster() -> None:
    found = {job.id: job for job in parse(slurm_sacct, REAL).jobs}
    assert list(found)[:8] == ["1", "2", "4", "5", "7+0", "7+1", "9", "10"]
    assert list(found)[8:] == ["3_1", "3_2", "3_3", "3_4", "3_5", "3_6"]
    lammps = found["2"]
    assert lammps.hosts == ("node0020", "node0035", "node0063")
    assert (lammps.slots, lammps.ranks, lammps.distribution) == ((14, 14, 14), 40, "block")
    assert lammps.ended_at == datetime(2026, 11, 21, 3, 36, 26, tzinfo=UTC)
    assert (found["1"].ranks, found["1"].slots, found["1"].distribution) == (64, (4,) * 16, "block")
    assert found["10"].state == "CANCELLED"
    assert (found["5"].state, len(found["5"].hosts)) == ("NODE_FAIL", 40)
    assert found["5"].slots == (1,) * 40
    assert found["9"].ranks == 0


def test_all_columns_with_bars_in_the_command_are_read() -> None:
    found = {job.id: job for job in parse(slurm_sacct, read("slurm/sacct_all_cols_head.txt")).jobs}
    assert found["1"].hosts == tuple(f"node{i:04}" for i in range(1, 17))
    assert (found["1"].user, found["1"].account, found["2"].name) == ("root", "proj1", "lammps")
    assert found["2"].slots == (14, 14, 14)


def test_columns_may_come_in_any_order() -> None:
    rows = [line.split("|") for line in (HEAD, JOB, STEP)]
    turned = ["|".join(row[::-1]) for row in rows]
    assert jobs(*turned) == jobs(HEAD, JOB, STEP)
    trailing = [f"{line}|" for line in (HEAD, JOB, STEP)]
    assert jobs(*trailing) == jobs(HEAD, JOB, STEP)


BATCH = "7.batch|batch|1|1|8|COMPLETED|||node1|Unknown"


@pytest.mark.parametrize(
    ("rows", "ranks", "slots", "distribution"),
    [
        ((JOB, BATCH, STEP, STEP.replace("7.0", "7.1", 1)), 12, (6, 6), "cyclic"),  # the largest step
        ((JOB.replace("|2||16|", "|2|12|16|") + "Cyclic",), 12, (6, 6), "cyclic"),  # no steps
        ((JOB,), 0, (8, 8), ""),
        ((JOB, STEP.replace("node[1-2]", "node2").replace("|12|", "|8|")), 8, (8, 8), "cyclic"),
        ((JOB, STEP.replace("|halo|", "|orted|").replace("|12|", "|2|")), 0, (8, 8), ""),  # daemons of MPI
    ],
)
def test_ranks_are_those_of_the_largest_step_of_an_application_or_else_of_the_job(
    rows: tuple[str, ...], ranks: int, slots: tuple[int, ...], distribution: str
) -> None:
    (job,) = jobs(HEAD, *rows).values()
    assert (job.id, job.ranks, job.slots, job.distribution) == ("7", ranks, slots, distribution)


def test_waiting_jobs_have_no_hosts_and_the_last_run_of_a_requeued_one_counts() -> None:
    waiting = jobs(HEAD, "9_[1-4]|w|2||0|PENDING|Unknown|Unknown|None assigned|")["9_[1-4]"]
    assert (waiting.hosts, waiting.slots, waiting.started_at) == ((), (), None)
    parsed = parse(slurm_sacct, "\n".join([HEAD, JOB.replace("COMPLETED", "NODE_FAIL"), STEP, JOB]))
    assert [(job.state, job.ranks) for job in parsed.jobs] == [("COMPLETED", 0)]
    assert parsed.warnings == ("1 earlier run of requeued jobs is ignored",)


@pytest.mark.parametrize("name", ["a|b||c", "None", "unknown", ""])
def test_any_name_of_a_job_is_kept(name: str) -> None:
    assert jobs(HEAD, JOB.replace("halo", name), STEP)["7"].name == name


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        ([HEAD.replace("NodeList|", ""), JOB], 1, "column nodelist"),
        ([HEAD.replace("NNodes", "State")], 1, "a column is repeated"),
        (["JobID|State|NodeList", "1|COMPLETED|n1"], 1, "no column has the number of tasks or CPUs"),
        (["JobID  State  NodeList", "-----  -----  --------"], 1, "a table without '|' has truncated values"),
        ([HEAD, JOB[:30]], 2, "the row has 7 cells, not 10: is it truncated?"),
        ([HEAD, JOB, STEP.replace("|12|", "|x|")], 3, "column ntasks is not a number: 'x'"),
        ([HEAD, JOB.replace("node[1-2]", "node1")], 2, "NodeList names 1 hosts, but NNodes is 2"),
        ([HEAD, JOB.replace("COMPLETED", "")], 2, "not a job state"),
        ([HEAD, STEP], 2, "step 7.0 precedes the row of its job"),
        ([HEAD, JOB, "|" + STEP.partition("|")[2]], 3, "the row has no job number"),
        ([HEAD], None, "no jobs found"),
        (["# nothing"], None, "no jobs found"),
    ],
)
def test_a_row_that_cannot_be_read_is_refused(lines: list[str], line: int | None, reason: str) -> None:
    error = refusal(slurm_sacct, "\n".join(lines) + "\n")
    assert error.reason.startswith(reason)
    assert error.line == line
