"""Saving an intake kind by kind: very many jobs, hosts that the fabric lacks, several sources merged."""

from __future__ import annotations

import time
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.database.bulk_writes import instant, instants
from registry.database.driver import Transaction
from registry.errors import InputError, UnknownName
from registry.model import CounterSweep, HostOrder, Job, Profile, Trace
from registry.model.intake import IngestedData, Intake, Receipt
from registry.progress import silent
from registry.registry import Registry
from registry.store import jobs as jobs_module
from registry.store import saving
from registry.store.ingest_runs import SAVED
from registry.store.jobs import batches
from registry.store.saving import KINDS, concatenated, describe, first_names, join_sweeps, only_one
from tests.registry.store.test_counters import sweep
from tests.registry.store.test_layouts import named
from tests.support.fat_tree import LEAF_GUID, SPINE_GUID, at, fat_tree
from tests.support.full_cluster import HOSTS


@pytest.fixture
def small(toy: Registry, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry that takes three jobs a transaction."""
    monkeypatch.setattr(jobs_module, "JOBS_A_TRANSACTION", 3)
    return toy


MANY = tuple(
    Job(id=str(number), state="COMPLETED", started_at=at(number), hosts=hosts, slots=(1,) * len(hosts))
    for number in range(8)
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


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(1, 6), st.integers(1, 40))
def test_batches_have_the_jobs_in_order_and_are_full(
    sizes: list[int], most_jobs: int, most_hosts: int
) -> None:
    hosts_of = [tuple(f"n{host}" for host in range(size)) for size in sizes]
    made = [Job(id=str(k), hosts=hosts, slots=(1,) * len(hosts)) for k, hosts in enumerate(hosts_of)]
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
    receipt = small.save(intake(MANY), lambda *given: shown.append(given[:3]))
    assert receipt.new("jobs") == 8
    assert saved(small) == {job.id: job.hosts for job in MANY}
    assert [stored.job.started_at for stored in small.jobs.list("toy")] == [at(n) for n in range(7, -1, -1)]
    assert [run.outcome for run in small.runs.list("toy") if run.files] == [SAVED]
    assert shown == [("saving jobs", done, 8) for done in (0, 3, 6, 8)]
    assert small.save(intake(MANY)).new("jobs") == 0


def test_an_unknown_host_of_the_last_job_saves_none_if_that_is_wanted(small: Registry) -> None:
    strange = Job(id="9", hosts=("node77",), slots=(1,))
    with pytest.raises(UnknownName, match="node77"):
        small.save(replace(intake((*MANY, strange)), strict=True))
    assert saved(small) == {}
    receipt = small.save(intake((*MANY, strange)))
    assert saved(small) == {job.id: job.hosts for job in MANY} | {"9": ()}
    assert small.jobs.read("9").job.hosts == ("node77",)
    assert receipt.unknown_hosts == ("node77",)
    assert small.same("k") is None  # read again the next time


@pytest.mark.parametrize("where", ["save_allocations", "instants"])
def test_what_stops_halfway_leaves_complete_jobs_and_goes_on(
    small: Registry, monkeypatch: Any, where: str
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
            small.save(intake(MANY))
    assert saved(small) == {job.id: job.hosts for job in MANY[:3]}
    _, orphans = small.database.query("MATCH (a:Allocation) WHERE NOT (:Job)-[:RAN_ON]->(a) RETURN a.id")
    assert orphans == []
    assert small.same("k") is None
    assert small.save(intake(MANY)).new("jobs") == 5
    assert saved(small) == {job.id: job.hosts for job in MANY}
    assert small.same("k") is not None


def test_a_fabric_and_few_jobs_are_one_transaction(registry: Registry, monkeypatch: Any) -> None:
    monkeypatch.setattr(saving, "save_jobs", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), jobs=MANY), silent)
    assert registry.fabrics.clusters() == ()


def test_times_come_back_from_numbers_to_the_microsecond(registry: Registry) -> None:
    old, later = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), datetime(2100, 2, 28, 1, 2, 3, tzinfo=UTC)
    times = [at(0) + timedelta(microseconds=1), None, old, later]

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


STRANGE_GUID = 0xBAD


def order(*hosts: str) -> HostOrder:
    return HostOrder(hosts=hosts, source="rankfile", name=f"{'-'.join(hosts)}.txt")


def sweep_of(minute: float, *devices: tuple[int, int]) -> CounterSweep:
    """Port 1 of devices, each named by its GUID or its LID."""
    return CounterSweep.of(at(minute), {(*device, 1): {"xmit_bytes": (7, False)} for device in devices})


def seen(data: IngestedData, minute: float = 1, *, strict: bool = False) -> Intake:
    given = {"source": "test", "files": ("f",), "key": "k", "strict": strict, **data.kinds()}
    return Intake(cluster="toy", observed_at=at(minute), **given)


PARTLY_KNOWN: dict[str, tuple[IngestedData, IngestedData, str]] = {
    "placements": (
        IngestedData(placements=(order("node01", "node00"), order("node01", "node77"))),
        IngestedData(placements=(order("node01", "node77"),)),
        "1 of 2 placements have ranks on hosts that the fabric lacks and are not saved: node01-node77.txt; "
        "hosts: node77 (--strict rejects the files)",
    ),
    "layouts": (
        IngestedData(layouts=(named("node77"), named("node00"))),
        IngestedData(layouts=(named("node77"),)),
        "1 of 2 layouts are of hosts that the fabric lacks and are not saved: node77 "
        "(--strict rejects the files)",
    ),
    "counters": (
        IngestedData(counters=(sweep_of(1, (LEAF_GUID, 0), (STRANGE_GUID, 0), (0, 4000)),)),
        IngestedData(counters=(sweep_of(1, (STRANGE_GUID, 0), (0, 4000)),)),
        "the fabric lacks 2 of 3 devices with counters: LID 4000, GUID 0x0000000000000bad; those with a LID "
        "only are left out (--strict rejects the files)",
    ),
}
"""Kind: data of which a part is known, the unknown part alone, the warning about the first."""


@pytest.mark.parametrize("kind", PARTLY_KNOWN)
def test_what_is_known_is_saved_and_the_rest_is_named(toy: Registry, kind: str) -> None:
    data, _, warning = PARTLY_KNOWN[kind]
    receipt = toy.save(seen(data))
    assert receipt.new(kind) == 1
    assert receipt.warnings == (warning,)
    assert bool(receipt.unknown_hosts) != bool(receipt.unknown_devices)
    assert toy.same("k") is None  # the same files again are read again, and warned about
    again = toy.save(seen(data))
    assert (again.new(kind), again.warnings) == (0, (warning,))


@pytest.mark.parametrize("kind", PARTLY_KNOWN)
def test_it_is_rejected_if_that_is_wanted_or_if_nothing_is_known(toy: Registry, kind: str) -> None:
    partly, not_at_all, _ = PARTLY_KNOWN[kind]
    before = toy.database.query("MATCH (n) WHERE NOT n:IngestRun RETURN count(n)")[1]
    for data, strict in ((partly, True), (not_at_all, False)):
        with pytest.raises(UnknownName, match=r"node77|LID '4000'"):
            toy.save(seen(data, strict=strict))
        assert toy.runs.list("toy")[0].outcome == "failed"
    assert toy.database.query("MATCH (n) WHERE NOT n:IngestRun RETURN count(n)")[1] == before


def test_unknown_hosts_and_devices_are_in_the_receipt(toy: Registry) -> None:
    merged = {name: value for data, *_ in PARTLY_KNOWN.values() for name, value in data.kinds().items()}
    receipt = toy.save(seen(IngestedData(**merged)))
    assert receipt.unknown_hosts == ("node77",)
    assert receipt.unknown_devices == ("LID 4000", "GUID 0x0000000000000bad")
    assert toy.placements.read(receipt.ids("placements")[0]).hosts == ("node01", "node00")
    assert [one.host for one in toy.layouts.list("toy")] == ["node00"]
    # GUIDs stay: ports count as soon as the fabric has them; LIDs are given to others
    assert toy.counters.read("toy").guid.tolist() == sorted([LEAF_GUID, STRANGE_GUID])


def test_a_sweep_without_any_known_device_does_not_cost_the_others(toy: Registry) -> None:
    sweeps = sweep_of(1, (STRANGE_GUID, 0)), sweep_of(2, (SPINE_GUID, 0))
    receipt = toy.save(seen(IngestedData(counters=sweeps)))
    assert (receipt.new("counters"), toy.counters.read("toy").guid.tolist()) == (1, [SPINE_GUID])
    assert "as are 1 of 2 sweeps without any known device" in receipt.warnings[0]


def test_a_host_that_was_retired_and_a_switch_take_no_placement(toy: Registry) -> None:
    """A placement needs the hosts of the fabric of its time; jobs need only hosts that were there once."""
    with pytest.raises(UnknownName, match="no host 'leaf0'"):
        toy.save(seen(IngestedData(placements=(order("leaf0"),))))
    toy.save(Intake(cluster="toy", observed_at=at(5), fabric=fat_tree(leaves=1)))
    data = IngestedData(placements=(order("node03"), order("node00")))
    for minute, unknown in ((1, ()), (6, ("node03",))):
        assert toy.save(seen(data, minute)).unknown_hosts == unknown


def test_the_first_names_and_the_number_of_the_others() -> None:
    assert first_names(list("abcde")) == "a, b, c, d, e"
    assert first_names(list("abcdefg")) == "a, b, c, d, e and 2 more"


def test_every_attribute_of_ingested_data_has_a_kind() -> None:
    assert {kind.name for kind in KINDS} == {field.name for field in fields(IngestedData)}
    merge = next(kind.merge for kind in KINDS if kind.name == "traces")
    trace = Trace(ranks=2, at=[0.0], sender=[0], receiver=[1], bytes=[1], tag=[0])  # type: ignore[arg-type]
    assert merge([("a", (None,)), ("b", (None, None))]) == ()  # only if there are any
    assert merge([("a", (None,)), ("b", (trace,))]) == (None, trace)


def test_a_second_value_is_refused_with_both_files() -> None:
    merge = only_one("fabric")
    assert merge([("a", None), ("b", 1)]) == 1
    assert merge([("a", None)]) is None
    with pytest.raises(InputError, match="a second fabric in one ingest, the first is in a") as error:
        merge([("a", 1), ("b", None), ("c", 2)])
    assert error.value.path == "c"
    assert concatenated([("a", (1, 2)), ("b", (3,))]) == (1, 2, 3)


def test_sweeps_of_other_counters_within_a_minute_are_joined() -> None:
    def joined(*sweeps: CounterSweep) -> list[tuple[float, tuple[str, ...]]]:
        found = join_sweeps([(f"file {k}", (one,)) for k, one in enumerate(sweeps)])
        return [((one.at - at(0)).total_seconds(), one.names) for one in found]

    errors = sweep(6, names="symbol_errors")
    both = ("xmit_bytes", "symbol_errors")
    assert joined(errors, sweep(5)) == [(360.0, both)]
    assert joined(errors, sweep(4)) == [(240.0, both[:1]), (360.0, both[1:])]
    assert joined(sweep(5), sweep(5.5)) == [(300.0, both[:1]), (330.0, both[:1])]


def test_an_ingest_is_described_kind_by_kind() -> None:
    profiles = (Profile.from_edges([0], [1], [1.0], name="pair"),)
    intake = Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), profiles=profiles)
    size = f"{len(fat_tree().hosts)} hosts, {len(fat_tree().switches)} switches"
    fabric, profile = describe(intake, None)
    assert fabric.startswith("fabric of toy observed at 2026-")
    assert fabric.endswith(f"{size}, {fat_tree().cable_count} cables")
    assert profile == "profile pair would be saved"
    receipt = Receipt(cluster="toy", new_observation=True, new_content=True, links_opened=4)
    fabric, profile = describe(intake, receipt)
    assert fabric.endswith("; link directions: 4 new, 0 removed")
    assert profile == "profile pair saved"
