"""Jobs, states, times, ids and slots as all tools of Slurm print them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.jobs import slurm_fields as slurm
from ingest.formats.jobs.slurm_fields import JobList, Where
from registry.errors import InputError
from registry.model import Job

HERE = Where("jobs.txt", 3, "a row")


def job(id: str, hosts: int = 1) -> Job:
    return Job(id=id, state="RUNNING", hosts=tuple(f"n{k}" for k in range(hosts)), slots=(1,) * hosts)


def rank_by_rank(ranks: int, room: list[int]) -> list[int]:
    """Slurm's own way: rounds over the hosts, one rank each while there is room, then regardless."""
    taken = [0] * len(room)
    regardless, cycle = False, 0
    while sum(taken) < ranks:
        more = False
        for host, slots in enumerate(room):
            if sum(taken) < ranks and (cycle < slots or regardless):
                taken[host] += 1
                more = more or cycle + 1 < slots
        regardless = regardless or not more
        cycle += 1
    return taken


@given(st.integers(1, 60), st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_ranks_are_distributed_as_slurm_does(ranks: int, room: list[int]) -> None:
    assert slurm.ranks_by_host(ranks, room) == tuple(max(1, count) for count in rank_by_rank(ranks, room))


@pytest.mark.parametrize(
    ("printed", "over_hosts"),
    [
        ("Block", "block"),
        ("CBlock", "cyclic"),
        ("BCyclic", "block"),
        ("Cyclic,Block", "cyclic"),
        ("plane=4", "plane"),
        ("Arbitrary", "arbitrary"),
        ("Unknown", ""),
        ("", ""),
    ],
)
def test_a_distribution_is_the_one_over_hosts(printed: str, over_hosts: str) -> None:
    assert slurm.parse_distribution(printed) == over_hosts


def test_states_times_and_ids_and_steps_are_those_of_slurm() -> None:
    assert slurm.parse_state("CANCELLED by 0", HERE) == "CANCELLED"
    assert slurm.parse_time("2026-01-31T12:00:00", HERE) == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert slurm.parse_time("Unknown", HERE) is None
    assert slurm.parse_epoch(60, HERE) == datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    assert slurm.parse_epoch(0, HERE) is None
    assert (slurm.array_id("3", "1"), slurm.array_id("3", "4-6%2")) == ("3_1", "3_[4-6%2]")
    assert slurm.het_id("7", "1") == "7+1"
    with pytest.raises(InputError, match="not a time such as"):
        slurm.parse_time("soon", HERE)
    steps = (("4711.0", "halo"), ("4711.batch", "batch"), ("4711.0", "orted"))
    assert [slurm.is_application(*step) for step in steps] == [True, False, False]


def test_counts_slots_and_tasks_of_hosts() -> None:
    assert (slurm.parse_count("", "CPUS", HERE), slurm.parse_count("12", "CPUS", HERE)) == (0, 12)
    with pytest.raises(InputError, match="CPUS is not a number: '-1'"):
        slurm.parse_count("-1", "CPUS", HERE)
    assert [slurm.even_slots(*given) for given in ((7, 3), (0, 2), (5, 0))] == [(3, 3, 3), (1, 1), ()]
    assert slurm.parse_tasks_per_node("3,2(x2)", 3, HERE) == (3, 2, 2)
    assert slurm.parse_tasks_per_node("4", 3, HERE) == (4, 4, 4)
    with pytest.raises(InputError, match="not the tasks of 2 hosts"):
        slurm.parse_tasks_per_node("3,2(x2)", 2, HERE)


def test_surplus_cells_go_back_to_the_column_of_free_text() -> None:
    columns = ["ID", "NAME", "STATE"]
    assert slurm.cells_between_bars("1|a|b|R", columns, ("NAME",), HERE) == {
        "ID": "1",
        "NAME": "a|b",
        "STATE": "R",
    }
    for line, free in (("1|a|b|R", ()), ("1|a", ("NAME",))):
        with pytest.raises(InputError, match="cells, not 3: is it truncated"):
            slurm.cells_between_bars(line, columns, free, HERE)


def test_a_repeated_job_is_an_error_or_another_run() -> None:
    once, again = JobList("jobs.txt"), JobList("jobs.txt", requeued=True)
    for jobs in (once, again):
        jobs.add(job("1"), HERE)
    with pytest.raises(InputError, match="job 1 is repeated"):
        once.add(job("1", 2), HERE)
    again.add(job("1", 2), HERE)
    parsed = again.parsed((0, "job has", "jobs have", "nothing"), (2, "job has", "jobs have", "something"))
    assert [len(found.hosts) for found in parsed.jobs if found is not None] == [2]
    assert parsed.warnings == ("2 jobs have something", "1 earlier run of requeued jobs is ignored")


def test_jobs_and_hosts_are_bounded_and_required() -> None:
    with pytest.raises(InputError, match="no jobs found"):
        JobList("jobs.txt").parsed()
    for jobs in (JobList("jobs.txt", jobs_left=1), JobList("jobs.txt", hosts_left=3)):
        jobs.add(job("1", 2), HERE)
        with pytest.raises(InputError, match="split the file by time"):
            jobs.add(job("2", 2), HERE)
