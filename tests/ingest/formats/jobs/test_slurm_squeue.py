"""Jobs as squeue prints them: the same ones that its JSON tells of."""

from __future__ import annotations

import pytest

from ingest.formats.jobs import slurm_json, slurm_squeue
from registry.model import Job
from tests.support.inputs import parse, read, refusal

TABLE = read("slurm/squeue.txt")
BARS = read("slurm/squeue_fmt.txt")
TITLE = TABLE.decode().splitlines()[0]
LONG = """\
Sat Nov 21 03:35:41 2026
             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)
                 1     batch  stencil     root  RUNNING       0:10 UNLIMITED     16 node[0001-0016]
                 5     batch    a b c     root COMPLETI       0:00 UNLIMITED      1 node0023
"""
"""`squeue -l`, whose columns are cut at the same widths."""


def jobs(content: str | bytes) -> dict[str, Job]:
    return {job.id: job for job in parse(slurm_squeue, content).jobs}


@pytest.mark.parametrize("content", [TABLE, BARS], ids=["table", "bars"])
def test_it_gives_the_jobs_of_its_json(content: bytes) -> None:
    found = jobs(content)
    known = {job.id: job for job in parse(slurm_json, read("slurm/squeue.json.gz")).jobs}
    assert found.keys() == known.keys() - {"4", "10"}  # finished: squeue hides them
    for key, job in found.items():
        if known[key].state == job.state != "COMPLETING":
            assert (job.name, job.hosts) == (known[key].name, known[key].hosts)
    assert found["1"].hosts == tuple(f"node{i:04d}" for i in range(1, 17))


def test_requested_columns_contain_more_and_a_bar_in_a_name_is_put_back() -> None:
    job = jobs(BARS)["1"]
    assert (job.state, job.slots, job.ranks) == ("RUNNING", (4,) * 16, 0)
    assert job.started_at is not None
    assert parse(slurm_squeue, BARS).warnings == ()
    found = jobs("JOBID|NAME|STATE|NODELIST\n7|a|b|c|RUNNING|n1\n")
    assert (found["7"].name, found["7"].hosts) == ("a|b|c", ("n1",))


def test_the_table_lists_no_cpus_no_hosts_of_completing_jobs_and_reasons_of_waiting_ones() -> None:
    assert parse(slurm_squeue, TABLE).warnings == (
        "7 jobs without CPUs: one rank per host is assumed; use `scontrol show jobs -d` instead",
        "1 completing job lists only the hosts still being cleaned: read without hosts",
    )
    assert jobs(TABLE)["5"].hosts == ()
    waiting = jobs(TABLE)["3_[3-6%2]"]
    assert (waiting.state, waiting.hosts, waiting.started_at) == ("PENDING", (), None)


def test_the_long_table_begins_with_a_date() -> None:
    assert slurm_squeue.recognise(LONG, "x")
    found = jobs(LONG)
    assert (found["5"].name, found["5"].state, found["5"].hosts) == ("a b c", "COMPLETING", ())
    assert (found["1"].state, len(found["1"].hosts)) == ("RUNNING", 16)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("JOBID|NAME|STATE\n", 1, "the columns JOBID, ST or STATE, and NODELIST are required"),
        ("JOBID|STATE|NODELIST\n7|RUNNING\n", 2, "the row has 2 cells, not 3: is it truncated?"),
        ("JOBID|STATE|NODELIST\n7|RUNNING|n1|x\n", 2, "the row has 4 cells, not 3: is it truncated?"),
        ("JOBID|STATE|STATE|NODELIST\n7|R|R|n1\n", 2, "a column is repeated"),
        ("JOBID|STATE|NODELIST\nx|RUNNING|n1\n", 2, "not a job's number: 'x'"),
        ("JOBID|STATE|NODELIST\n7|RUNNING|n[1-\n", 2, "unpaired bracket in a host list"),
        ("JOBID|STATE|NODES|NODELIST\n7|RUNNING|3|n1\n", 2, "names 1 hosts, but NODES is 3"),
        ("JOBID|STATE|CPUS|NODELIST\n7|RUNNING|x|n1\n", 2, "CPUS is not a number: 'x'"),
        ("JOBID|STATE|NODELIST\n7|RUNNING|n1\n7|RUNNING|n1\n", 3, "job 7 is repeated"),
        ("JOBID|STATE|NODELIST\n", None, "no jobs found"),
        ("JOBID ST NODELIST NAME\n", 1, "the last column of a table must be NODELIST"),
        (TITLE + "\n" + "9" * 19 + "     batch\n", 2, "the row does not fit the column PARTITION"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(text: str, line: int | None, reason: str) -> None:
    error = refusal(slurm_squeue, text)
    assert error.line == line
    assert error.reason.startswith(reason)
