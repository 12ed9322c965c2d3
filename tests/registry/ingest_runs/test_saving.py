"""Very many jobs: saved in transactions of their own, each job whole, the rest by the same call again."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.database.bulk_writes import instant, instants
from registry.database.driver import Transaction
from registry.errors import UnknownName
from registry.ingest_runs import kinds
from registry.ingest_runs.runs import SAVED
from registry.jobs import jobs as jobs_module
from registry.jobs.jobs import batches
from registry.model import Job
from registry.model.intake import Intake
from registry.progress import silent
from registry.registry import Registry
from tests.support.fat_tree import at, fat_tree

HOSTS = ("node00", "node01", "node02", "node03")


@pytest.fixture
def small(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry that knows the hosts of cluster ``toy`` and takes three jobs a transaction."""
    monkeypatch.setattr(jobs_module, "JOBS_A_TRANSACTION", 3)
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree()))
    return registry


def many(count: int = 8) -> tuple[Job, ...]:
    return tuple(
        Job(id=str(number), state="COMPLETED", started_at=at(number), hosts=hosts, slots=(1,) * len(hosts))
        for number in range(count)
        for hosts in (HOSTS[: number % 5],)
    )


def intake(jobs: tuple[Job, ...]) -> Intake:
    return Intake(cluster="toy", jobs=jobs, source="slurm-json", files=("sacct.json",), key="k")


def saved(registry: Registry) -> dict[str, tuple[str, ...]]:
    """Hosts of each job that is there, as the graph joins them."""
    _, rows = registry.database.query(
        "MATCH (j:Job) OPTIONAL MATCH (j)-[:RAN_ON]->(:Allocation)-[o:ON]->(d:Device) "
        "WITH j.job AS job, d.name AS host, o.order AS place ORDER BY job, place "
        "RETURN job, collect(host) AS hosts"
    )
    return {job: tuple(hosts) for job, hosts in rows}


@given(
    sizes=st.lists(st.integers(0, 30), max_size=30),
    most_jobs=st.integers(1, 6),
    most_hosts=st.integers(1, 40),
)
def test_batches_are_the_jobs_in_order_within_limits_and_no_smaller_than_needed(
    sizes: list[int], most_jobs: int, most_hosts: int
) -> None:
    made = [
        Job(id=str(number), hosts=tuple(f"n{h}" for h in range(size)), slots=(1,) * size)
        for number, size in enumerate(sizes)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs_module, "JOBS_A_TRANSACTION", most_jobs)
        patch.setattr(jobs_module, "HOSTS_A_TRANSACTION", most_hosts)
        found = batches(made)
    assert [job for batch in found for job in batch] == made
    weight = [sum(len(job.hosts) for job in batch) for batch in found]
    for batch, hosts in zip(found, weight, strict=True):
        assert 1 <= len(batch) <= most_jobs
        assert hosts <= most_hosts or len([job for job in batch if job.hosts]) == 1
    for number, following in enumerate(found[1:]):
        assert len(found[number]) == most_jobs or weight[number] + len(following[0].hosts) > most_hosts


def test_jobs_of_many_transactions_are_saved_and_recorded_as_one_run(small: Registry) -> None:
    shown: list[tuple[str, float, float | None]] = []
    receipt = small.save(
        intake(many()), lambda phase, done, total=None, best=None: shown.append((phase, done, total))
    )
    assert receipt.new("jobs") == 8
    assert saved(small) == {job.id: job.hosts for job in many()}
    assert [stored.job.started_at for stored in small.jobs.list("toy")] == [at(n) for n in range(7, -1, -1)]
    assert [run.outcome for run in small.runs.list("toy") if run.files] == [SAVED]
    assert shown == [("saving jobs", done, 8) for done in (0, 3, 6, 8)]
    assert small.save(intake(many())).new("jobs") == 0


def test_an_unknown_host_of_the_last_job_saves_none_if_that_is_wanted(small: Registry) -> None:
    strange = Job(id="9", hosts=("node77",), slots=(1,))
    with pytest.raises(UnknownName, match="node77"):
        small.save(replace(intake((*many(), strange)), strict=True))
    assert saved(small) == {}
    receipt = small.save(intake((*many(), strange)))
    assert saved(small) == {job.id: job.hosts for job in many()} | {"9": ()}
    assert small.jobs.read("9").job.hosts == ("node77",)
    assert receipt.unknown_hosts == ("node77",)
    assert small.same("k") is None  # read again the next time


@pytest.mark.parametrize("where", ["save_allocations", "instants"])
def test_what_stops_in_the_middle_leaves_whole_jobs_and_goes_on_the_next_time(
    small: Registry, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    before = getattr(jobs_module, where)
    calls = []

    def stopped(*given: object) -> object:
        calls.append(given)
        if len(calls) == (2 if where == "save_allocations" else 6):
            if where == "save_allocations":
                before(*given)  # what it has written is not to stay either
            raise KeyboardInterrupt
        return before(*given)

    with monkeypatch.context() as patch:
        patch.setattr(jobs_module, where, stopped)
        with pytest.raises(KeyboardInterrupt):
            small.save(intake(many()))
    assert saved(small) == {job.id: job.hosts for job in many()[:3]}
    _, orphans = small.database.query("MATCH (a:Allocation) WHERE NOT (:Job)-[:RAN_ON]->(a) RETURN a.id")
    assert orphans == []
    assert small.same("k") is None
    assert small.save(intake(many())).new("jobs") == 5
    assert saved(small) == {job.id: job.hosts for job in many()}
    assert small.same("k") is not None


def test_a_fabric_and_few_jobs_of_one_call_are_one_transaction(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "save_jobs", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), jobs=many()), silent)
    assert registry.fabrics.clusters() == ()


def test_times_come_back_from_numbers_to_the_microsecond(registry: Registry) -> None:
    times = [
        at(0) + timedelta(microseconds=1),
        None,
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2100, 2, 28, 1, 2, 3, tzinfo=UTC),
    ]

    def work(transaction: Transaction) -> list[datetime | None]:
        statement = f"UNWIND range(0, size($when_s) - 1) AS i RETURN i, {instant('when')} AS at ORDER BY i"
        return [row["at"] for row in transaction.run(statement, **instants("when", times))]

    assert registry.database.read(work) == times


def test_a_scan_of_the_future_and_one_that_it_hides_are_warned_of(registry: Registry) -> None:
    now = datetime.now(UTC)

    def warnings(minutes: float, without: tuple[int, ...] = ()) -> str:
        fabric = fat_tree(without=without)
        scan = Intake(cluster="toy", observed_at=now + timedelta(minutes=minutes), fabric=fabric)
        return " ".join(registry.save(scan).warnings)

    assert warnings(-60) == ""
    assert warnings(-90) == ""  # a late scan takes its place in time
    assert "is in the future and hides later ones" in warnings(60)
    assert "is not the latest" in warnings(0, without=(0,))
    assert "check the clocks" in warnings(1, without=(1,))
    assert warnings(-30) == ""


def test_the_duration_of_a_run_is_not_that_of_a_clock_that_was_set(registry: Registry) -> None:
    wrong = datetime.now(UTC) + timedelta(hours=1)
    scan = Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), files=("f",), started_at=wrong)
    registry.save(replace(scan, begun=time.monotonic() - 5))
    (run,) = registry.runs.list("toy")
    assert 5 <= run.seconds < 3600
