"""Reads for pages in few statements, against the same data read piece by piece."""

# mypy: disable-error-code="union-attr"

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from registry.errors import InputError, UnknownName
from registry.model import Fabric, Job, LinkRates, total
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store import fabric_history as devices
from registry.store.counters import Retention, rates_of, read_growth
from registry.store.fabric_history import (
    REMOVED,
    RENAMED,
    DeviceEvent,
    DeviceHistory,
    read_device_history,
    read_fabric_history,
    read_overview,
    read_snapshot_diff,
)
from registry.store.ingest_runs import FAILED, Attempt, SourceDay, read_ingests
from registry.store.job_lists import JobFilter
from registry.store.jobs import jobs_of_user
from registry.store.placements import open_placement
from registry.store.simulations import open_simulations
from tests.registry.store.test_counters import save, sweep
from tests.registry.store.test_intended import PLAN
from tests.registry.store.test_store_records import known, simulation_on
from tests.support.busy_cluster import PROPOSED, advise, at, fill, job, place, record, statements_of
from tests.support.fat_tree import fat_tree, tree_tables
from tests.support.full_cluster import same

__all__ = ["known"]

WHOLE = fat_tree()
HOUR = timedelta(hours=1)
DAY = 24 * 60
EVERY = JobFilter()


def see(registry: Registry, cluster: str, minute: float, **seen: Any) -> None:
    registry.save(Intake(cluster=cluster, observed_at=at(minute), **seen))


@pytest.fixture
def several(registry: Registry) -> Registry:
    """A cluster that lost a cable and got it back, ingested out of order, with tables; and another."""
    see(registry, "toy", 30, fabric=WHOLE, tables=tree_tables())
    see(registry, "toy", 10, fabric=WHOLE)
    see(registry, "toy", 20, fabric=fat_tree(without=(0,)))
    see(registry, "toy", 40, fabric=WHOLE)
    see(registry, "toy", 50, fabric=fat_tree(slow=(1,)))
    see(registry, "big", 5, fabric=fat_tree(leaves=3))
    return registry


@pytest.fixture
def busy(registry: Registry) -> Registry:
    """Four jobs of two users; one never started."""
    fill(
        registry,
        job("71", 2, 6, user="ada", state="COMPLETED", title="Weather <b>"),
        job("72", 4, user="bao", state="RUNNING", title="cfd"),
        job("8", 5, user="ada", state="RUNNING"),
        job("9", None, user="ada", state="PENDING", submitted_at=at(3)),
    )
    registry.jobs.attach("71", "ring")
    registry.jobs.attach("72", "pair")
    return registry


def test_an_empty_registry_has_nothing_to_show(registry: Registry) -> None:
    database = registry.database
    history = read_fabric_history(database, None)
    assert (history.clusters, history.timeline, history.sweeps) == ({}, None, ())
    assert read_fabric_history(database, "one").clusters == {}
    found = read_overview(database, None, at(0))
    assert (found.clusters, found.sources, found.cluster) == ({}, (), None)
    assert (found.before, found.plan, found.sweeps) == (None, None, ())
    assert read_overview(database, "toy", at(0)).cluster is None
    choices = registry.job_pages.choices()
    assert (choices.users, choices.states, choices.applications, dict(choices.clusters)) == ((), (), (), {})
    assert registry.job_pages.page(EVERY).rows == ()
    ingests = read_ingests(database, [at(0)], [])
    assert (ingests.sources, ingests.days) == ((), ())
    assert read_growth(database, "nobody", HOUR) == ()


def test_states_are_in_order_of_time_whenever_they_were_ingested(several: Registry) -> None:
    line = read_fabric_history(several.database, "toy").timeline
    assert [state.at for state in line.states] == [at(10), at(20), at(30), at(50)]
    assert line.last_at == at(50)
    for moment in (10, 15, 20, 30, 45, 50, 99):
        state, expected = line.as_of(at(moment)), several.fabrics.read("toy", at(moment))
        assert (state.content, state.routing) == (expected.id, expected.routing)
    assert line.as_of(at(9)) is None
    observations = several.fabrics.observations("toy")
    assert {state.content for state in line.states} == {one.snapshot for one in observations}


def test_the_difference_of_two_states_is_that_of_their_fabrics(several: Registry) -> None:
    see(several, "toy", 60, fabric=WHOLE, tables=tree_tables(turn=1))
    line = read_fabric_history(several.database, "toy").timeline
    for start, end in ((10, 20), (20, 30), (30, 50), (50, 10), (50, 60)):
        before, after = line.as_of(at(start)), line.as_of(at(end))
        assert before is not None
        assert after is not None
        found = read_snapshot_diff(several.database, "toy", before, after)
        expected = several.fabrics.changes("toy", at(start), at(end))
        for name in (
            *("cables_appeared", "cables_vanished", "capacity_changed", "switches_rerouted", "renamed"),
        ):
            assert getattr(found.changes, name) == getattr(expected, name)
        assert bool(found.changes.switches_rerouted) == (end == 60)
        assert found.before.fabric.cable_count == several.fabrics.read("toy", at(start)).fabric.cable_count
        assert found.after.id == after.content


def test_the_fabric_history_is_that_of_its_parts(registry: Registry) -> None:
    for cluster, minute, capacity in (("two", 0, 1.0), ("one", 1, 1.0), ("one", 2, 2.0), ("one", 3, 1.0)):
        see(registry, cluster, minute, fabric=Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], capacity))
    found = read_fabric_history(registry.database, None, counters=True)
    assert tuple(found.clusters.values()) == registry.fabrics.clusters()
    assert [state.at for state in found.timeline.states] == [at(1), at(2), at(3)]
    other = read_fabric_history(registry.database, "two").timeline
    assert [(other.cluster, state.at) for state in other.states] == [("two", at(0))]


def test_growth_of_counters_is_the_sum_of_its_parts(registry: Registry) -> None:
    """Traffic every ten minutes for six hours, symbol errors five minutes after it."""
    see(registry, "toy", 0, fabric=fat_tree())
    sweeps = [sweep(minute) for minute in range(10, 370, 10)]
    sweeps += [sweep(minute + 5, minute, names="symbol_errors") for minute in range(10, 370, 10)]
    save(registry, sweeps[0])
    database = registry.database
    assert read_growth(database, "toy", HOUR) == ()  # a single sweep
    save(registry, *sweeps[1:])
    assert read_growth(database, "toy", HOUR, at(5)) == ()

    def check(over: timedelta, minute: float | None = None) -> None:
        time = None if minute is None else at(minute)
        whole = registry.counters.recent("toy", over, time)
        assert whole is not None
        found = total(read_growth(database, "toy", over, time, most=1000))
        assert (found.start, found.end, found.names) == (whole.start, whole.end, whole.names)
        for name in ("guid", "port", "amount", "at_least", "covered", "peak"):
            assert np.array_equal(getattr(found, name), getattr(whole, name)), name

    for over, minute in ((HOUR, None), (3 * HOUR, None), (HOUR, 121), (100 * HOUR, None)):
        check(over, minute)
    parts = read_growth(database, "toy", HOUR, at(204))
    assert [part.end for part in parts] == [at(minute) for minute in range(145, 201, 5)]
    traffic = next(part for part in parts if part.end == at(160))
    # port k sends (k + 1) * 1000 bytes a minute
    assert traffic.column("xmit_bytes").tolist() == [10_000, 20_000, 30_000]
    few = read_growth(database, "toy", 5 * HOUR, most=4)
    ends = [part.end for part in few if "xmit_bytes" in part.names]
    assert (len(ends), ends[-1]) == (4, at(360))
    whole = registry.counters.recent("toy", 5 * HOUR)
    assert whole is not None
    assert np.array_equal(total(few).amount, whole.amount)
    rule = Retention(full=timedelta(hours=2), hourly=timedelta(days=2))
    assert registry.counters.roll_up("toy", rule, now=at(360)) > 0
    check(HOUR)
    check(4 * HOUR)


def history_of(registry: Registry, name: str, fabric: Fabric = WHOLE, cluster: str = "toy") -> DeviceHistory:
    return read_device_history(registry.database, cluster, fabric, fabric.names.index(name))


def test_lost_returned_and_slower_cables_are_events_of_both_ends(several: Registry) -> None:
    # cable 0: leaf0:3 to spine0:1, lost at 20, back at 30; cable 1: leaf0:4 to spine1:1, half the speed at 50
    slower = DeviceEvent(at(50), devices.CHANGED_SPEED, 4, "spine1", 1)
    back_and_gone = ((at(30), devices.APPEARED), (at(20), REMOVED))
    events = tuple(DeviceEvent(*seen, 3, "spine0", 1) for seen in back_and_gone)
    assert history_of(several, "leaf0") == DeviceHistory(at(10), (slower, *events))
    events = tuple(DeviceEvent(*seen, 1, "leaf0", 3) for seen in back_and_gone)
    assert history_of(several, "spine0").events == events
    assert history_of(several, "node00") == DeviceHistory(at(10), ())
    assert history_of(several, "leaf8", fat_tree(leaves=9)) == DeviceHistory(None, ())


def test_a_new_name_is_an_event_and_cables_of_a_later_device_are_not(registry: Registry) -> None:
    see(registry, "toy", 10, fabric=fat_tree(leaves=1))
    see(registry, "toy", 20, fabric=WHOLE)
    for name in ("leaf1", "node03"):
        assert history_of(registry, name) == DeviceHistory(at(20), ())
    see(registry, "toy", 30, fabric=fat_tree(renamed={"leaf1": "leaf-b"}))
    assert history_of(registry, "leaf1").events == (DeviceEvent(at(30), RENAMED, -1, "leaf-b", -1),)


def test_runs_are_counted_by_days_and_failures_hold_no_data(registry: Registry) -> None:
    scan = Intake(cluster="toy", fabric=fat_tree(), observed_at=at(-60), source="scan", files=("s",))
    registry.save(replace(scan, started_at=at(0)))
    registry.save(replace(scan, observed_at=at(DAY), started_at=at(DAY + 1)))
    registry.save(replace(scan, observed_at=at(DAY + 5), started_at=at(DAY + 6)))
    registry.save(replace(scan, observed_at=at(DAY - 5), started_at=at(DAY + 7)))  # an older one, later
    registry.failed(Attempt(started_at=at(DAY + 7), cluster="toy", formats=("scan",)), InputError("cut"))
    registry.failed(Attempt(started_at=at(2 * DAY), cluster="toy", formats=("scan",)), InputError("late"))
    one = Job(id="1", hosts=("node00",), slots=(1,))
    registry.save(Intake(cluster="toy", jobs=(one,), source="jobs", files=("j",), started_at=at(2 * DAY)))
    found = read_ingests(registry.database, [at(DAY), at(2 * DAY), at(3 * DAY)], ["toy"])
    assert found.sources == registry.runs.sources()
    assert [one.error for one in found.sources] == ["", "late"]

    def day(format: str, number: int, runs: int, failed: int, minute: float | None) -> SourceDay:
        time = None if minute is None else at(minute)
        return SourceDay(cluster="toy", format=format, day=number, runs=runs, failed=failed, observed_at=time)

    assert found.days == (
        day("jobs", 2, 1, 0, 2 * DAY),  # without a time of its own: that of the run
        day("scan", 0, 2, 0, DAY - 5),
        day("scan", 1, 3, 1, DAY + 5),
        day("scan", 2, 1, 1, None),
    )


def ids(registry: Registry, asked: JobFilter = EVERY, **where: int) -> list[str]:
    return [row.stored.job.id for row in registry.job_pages.page(asked, **where).rows]


def test_jobs_are_listed_page_by_page_the_latest_started_first_and_the_waiting_last(busy: Registry) -> None:
    page = busy.job_pages.page(EVERY)
    order = ["8", "72", "71", "9"]
    assert [row.stored.job.id for row in page.rows] == order
    assert [row.stored for row in page.rows] == [busy.jobs.read(name) for name in order]
    assert [row.application for row in page.rows] == [None, "ft", "cg", None]
    for start in range(5):
        found = busy.job_pages.page(EVERY, limit=2, offset=start)
        assert ([row.stored.job.id for row in found.rows], found.total) == (order[start : start + 2], 4)
    assert busy.job_pages.page(JobFilter(user="nobody")).total == 0


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    *(({"user": "ada"}, ["8", "71", "9"]), ({"users": ("bao", "cem")}, ["72"]), ({"users": ()}, [])),
    *(({"state": "RUNNING"}, ["8", "72"]), ({"state": "RUNNING", "user": "ada"}, ["8"])),
    *(({"application": "cg"}, ["71"]), ({"text": "7"}, ["72", "71"]), ({"text": "1"}, [])),
    *(({"text": "wEATHER"}, ["71"]), ({"text": "<b>"}, ["71"]), ({"since": at(6)}, ["8", "72", "9"])),
    *(({"since": at(5.5)}, ["8", "72", "71", "9"]), ({"until": at(4)}, ["71", "9"])),
    ({"since": at(6), "until": at(5)}, ["72", "9"]),
]


def test_jobs_are_filtered(busy: Registry) -> None:
    for cluster in (None, "toy"):
        for asked, found in FILTERS:
            assert ids(busy, JobFilter(cluster=cluster, **asked)) == found, asked
    fill(busy, job("72", 7, user="cem", state="FAILED"), cluster="two")
    assert ids(busy) == ["72", "8", "72", "71", "9"]
    assert ids(busy, JobFilter(cluster="two")) == ["72"]
    assert ids(busy, JobFilter(cluster="none")) == []
    every, toy = busy.job_pages.choices(), busy.job_pages.choices("toy")
    assert every.users == ("ada", "bao", "cem")
    assert every.states == ("COMPLETED", "FAILED", "PENDING", "RUNNING")
    assert (toy.users, toy.states) == (("ada", "bao"), ("COMPLETED", "PENDING", "RUNNING"))
    assert toy.applications == ("cg", "ft")
    assert dict(toy.clusters) == {info.name: info.snapshot for info in busy.fabrics.clusters()}


def test_jobs_are_filtered_by_what_may_be_gained_and_by_how_far_their_bound_is(busy: Registry) -> None:
    present = place(busy, "71", seconds=4.0, bound=1.0)
    place(busy, "72", seconds=4.0, bound=3.0)
    place(busy, "72", seconds=9.0, bound=1.0, role=PROPOSED)
    for cluster in (None, "toy"):
        found = busy.job_pages.page(JobFilter(cluster=cluster, minimum_ratio=2.0))
        assert ([row.stored.job.id for row in found.rows], found.total) == (["71"], 1)
        assert ids(busy, JobFilter(cluster=cluster, minimum_ratio=1.0)) == ["72", "71"]
    advise(busy, "71", present, present, proposed_seconds=2.0)
    advise(busy, "72", present, present, when=at(9), proposed_seconds=1.0)
    advise(busy, "72", present, present, when=at(10), proposed_seconds=3.0)
    rows = {row.stored.job.id: row.advice for row in busy.job_pages.page(EVERY).rows}
    assert (rows["8"], rows["72"].gain) == (None, 4 / 3)
    assert ids(busy, JobFilter(minimum_gain=1.0)) == ["72", "71"]
    assert ids(busy, JobFilter(minimum_gain=1.5)) == ["71"]


def test_a_row_has_the_newest_evaluated_placement_present_ones_first(busy: Registry) -> None:
    place(busy, "71", ranks=(0, 1, 0))
    present = place(busy, "71", ranks=(1, 0, 0))
    place(busy, "71", role=PROPOSED, seconds=2.0)
    place(busy, "71", ranks=(1, 1, 0), evaluated=False)
    proposed = place(busy, "8", role=PROPOSED)
    found = {row.stored.job.id: row.placement for row in busy.job_pages.page(EVERY).rows}
    history = {info.id: info for info in busy.placements.history()}
    assert found == {"71": history[present], "8": history[proposed], "72": None, "9": None}
    assert history[present].role == "present"


def test_a_job_is_opened_with_all_its_placements(busy: Registry) -> None:
    first = place(busy, "71")
    second = place(busy, "71", role=PROPOSED, seconds=2.0)
    place(busy, "8")
    advise(busy, "71", first, second)
    found = busy.job_pages.open("71")
    assert found.stored == busy.jobs.read("71")
    assert found.placements == busy.placements.history(job="71")
    assert [info.id for info in found.placements] == [second, first]
    assert found.application == "cg"
    assert found.advice.proposed == second
    assert busy.job_pages.open("toy/71").stored == found.stored
    assert busy.job_pages.open("72").placements == ()
    for ask in (
        lambda pages: pages.page(JobFilter(cluster="toy")),
        lambda pages: pages.page(JobFilter(minimum_ratio=1.0)),
        lambda pages: pages.choices("toy"),
        lambda pages: pages.open("71"),
    ):
        assert statements_of(busy, lambda counted, ask=ask: ask(counted.job_pages)) == 1  # type: ignore[misc]
    with pytest.raises(UnknownName, match="no job '711'; closest: 71"):
        busy.job_pages.open("711")
    with pytest.raises(UnknownName, match="there is no cluster 'two'; closest: toy"):
        busy.job_pages.open("71", "two")
    fill(busy, job("71", 7), cluster="two")
    with pytest.raises(UnknownName, match="is in clusters toy and two; add --cluster NAME"):
        busy.job_pages.open("71")
    assert busy.job_pages.open("71", "two").stored.cluster == "two"


def test_the_overview_has_clusters_sources_plan_and_what_was_before(several: Registry) -> None:
    for minute, formats, reason in ((60, ("x", "y"), "first"), (80, ("x",), "last"), (70, ("x",), "late")):
        several.failed(Attempt(started_at=at(minute), cluster="toy", formats=formats), InputError(reason))
    found = read_overview(several.database, None, at(0))
    assert found.cluster == "big"
    assert tuple(found.clusters.values()) == several.fabrics.clusters()
    assert found.sources == several.runs.sources()
    errors = {source.format: source.error for source in found.sources if source.last_outcome == FAILED}
    assert errors == {"x": "last", "y": "first"}
    expected = several.fabrics.read("toy", at(35))
    before = read_overview(several.database, "toy", at(35)).before
    assert (before.id, before.observed_at) == (expected.id, expected.observed_at)
    assert before.routing == expected.routing is not None
    assert before.fabric.cable_count == expected.fabric.cable_count
    cut = read_overview(several.database, "toy", at(25)).before
    assert cut.id != before.id
    assert read_overview(several.database, "toy", at(9)).before is None
    several.save(Intake(cluster="toy", observed_at=at(50), intended=PLAN))
    save(several, *(sweep(minute) for minute in (60, 70, 80)))
    found = read_overview(several.database, "toy", at(0))
    assert found.plan.id == several.intended.read("toy").id
    assert [one.at for one in found.sweeps] == [at(70), at(80)]
    big = read_overview(several.database, "big", at(0))
    assert (big.plan, big.sweeps) == (None, ())
    with pytest.raises(UnknownName, match="closest: toy"):
        read_overview(several.database, "toi", at(0))
    with pytest.raises(UnknownName, match="closest: toy"):
        read_fabric_history(several.database, "toi")


def test_a_clusters_version_changes_with_what_is_saved_and_jobs_of_users_are_found(several: Registry) -> None:
    first = {info.name: info.version for info in several.fabrics.clusters()}
    jobs = tuple(Job(id=str(k), user=user, hosts=("node00",), slots=(1,)) for k, user in enumerate("aba"))
    several.save(Intake(cluster="toy", jobs=jobs, source="test", observed_at=at(60)))
    second = {info.name: info.version for info in several.fabrics.clusters()}
    assert (second["toy"] != first["toy"], second["big"] == first["big"]) == (True, True)
    assert jobs_of_user(several.database, "a") == {"toy/0", "toy/2"}
    assert jobs_of_user(several.database, "c") == frozenset()


def test_rates_of_the_sweeps_are_those_of_the_counters(several: Registry) -> None:
    fabric = several.fabrics.read("toy").fabric

    def measured(moment: datetime | None = None) -> LinkRates | None:
        history = read_fabric_history(several.database, "toy", moment, counters=True)
        return rates_of(fabric, history.sweeps)

    assert measured() is None
    save(several, *(sweep(minute) for minute in (60, 70, 85)))
    for moment in (None, at(84), at(70)):
        found, expected = measured(moment), several.counters.rates("toy", moment)
        assert (found.start, found.end) == (expected.start, expected.end)
        assert np.array_equal(found.bytes_per_second, expected.bytes_per_second, equal_nan=True)
        rows = found.hottest(100)
        assert (len(rows), len(found.hottest(2))) == (3, 2)
        assert (np.diff(expected.share[rows]) <= 0).all()
    assert measured(at(65)) is None


@pytest.mark.parametrize("tables", [True, False])
def test_an_opened_placement_is_what_its_parts_are(busy: Registry, tables: bool) -> None:
    saved = record(busy, "71")
    placement = busy.placements.save(saved if tables else replace(saved, routing=None))
    whole = open_placement(busy.database, placement)
    stored = busy.placements.read(placement)
    snapshot = busy.fabrics.read("toy")
    profile = busy.profiles.read(str(stored.profile))
    assert (whole.stored.hosts, whole.profile.id) == (stored.hosts, stored.profile)
    assert whole.stored.content == whole.snapshot.id == snapshot.id
    assert whole.snapshot.fabric.names == snapshot.fabric.names
    assert whole.snapshot.observed_at == snapshot.observed_at
    assert np.array_equal(whole.profile.profile.bytes, profile.profile.bytes)
    assert whole.snapshot.routing == (snapshot.routing if tables else None)
    ours = whole.snapshot.fabric.tables
    assert same(ours, snapshot.fabric.tables) if tables else ours is None
    with pytest.raises(UnknownName) as error:
        open_placement(busy.database, placement[:-1] + "x")
    assert error.value.close == (placement,)


def test_simulations_are_opened_with_their_fabric(known: Registry) -> None:
    first, second = (known.simulations.save(simulation_on(known, code_version=one)) for one in ("1", "2"))
    found = open_simulations(known.database, [second, first, second])
    assert sorted(found) == sorted([first, second])
    snapshot = known.fabrics.read("toy")
    for name, opened in found.items():
        stored = known.simulations.read(name)
        assert opened.stored.code_version == stored.code_version
        assert same(opened.stored.simulation, stored.simulation)
        assert (opened.snapshot.id, opened.snapshot.observed_at) == (snapshot.id, snapshot.observed_at)
        assert opened.snapshot.fabric.names == snapshot.fabric.names
    assert found[first].snapshot is found[second].snapshot
    with pytest.raises(UnknownName) as error:
        open_simulations(known.database, [first[:-1] + "x"])
    assert first in error.value.close
