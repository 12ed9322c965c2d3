"""Requests, advice and what runs on a cluster: cases, placements, shared links, iterations, ports."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from mapping.checks.finding import ErrorLimits
from mapping.cluster import open_cluster
from mapping.distances.cost_model import CostModel
from mapping.placement.case import PlacementCase
from mapping.placement.place import find_placement
from mapping.placement.search import SearchOptions
from mapping.questions import simulate
from mapping.questions.advise import Advised, advise_all
from mapping.questions.live import (
    Live,
    Unloaded,
    imagine,
    other_load,
    pairs_on,
    read_ports,
    traffic,
    utilisation,
    with_counters,
    with_measured_iterations,
    with_running_jobs,
)
from mapping.questions.place import PlacementRequest, evaluate, pareto, place, resolve, subject_of
from mapping.questions.simulate import SimulationOptions, SimulationRequest, simulation_case
from mapping.questions.today import read_today
from mapping.traffic.names import find_link
from mapping.traffic.ports import PortTable
from mapping.traffic.what_if import Change
from registry.errors import DatabaseError, InputError, InvalidValue, UnknownName
from registry.model import CounterSweep, HostOrder, Job, Placement, Profile
from registry.model.counter_deltas import LinkRates
from registry.model.intake import Intake
from registry.model.job import MeasuredRun
from registry.registry import Registry
from registry.store.changes import summary
from registry.store.ingest_runs import Attempt
from tests.support import busy_cluster
from tests.support.dask_cluster import DaskCluster
from tests.support.fat_tree import LEAF_GUID, at, fat_tree
from tests.support.running_jobs import ACROSS, FABRIC, ONE_WAY, T0, job
from tests.support.sure import sure
from tests.support.traffic_jobs import two_leaves

OPTIONS = SearchOptions(steps=200, workers=1)


def test_a_case_has_the_hosts_of_the_job_or_given_ones_and_the_ids_of_all_data(running: Registry) -> None:
    case = resolve(running, PlacementRequest(profile="across", job="1", options=OPTIONS, slots=2))
    assert [case.fabric.names[host] for host in case.allocation.hosts] == ["a0", "b0", "a1", "b1"]
    assert case.allocation.slots.tolist() == [2, 2, 2, 2]
    assert (case.cluster, case.job, case.present, case.present_name) == ("c", "1", None, "")
    assert case.profile_id == running.profiles.read("across").id
    assert case.snapshot == running.fabrics.read("c").id
    assert case.costs.background is None
    hosts = PlacementRequest(profile="one-way", cluster="c", hosts=("b1", "a0"))
    assert resolve(running, hosts).allocation.slots.tolist() == [1, 1]
    kept = replace(hosts, hosts=None, keep=HostOrder(hosts=("b0", "b0"), name="order.txt"))
    case = resolve(running, kept)
    assert (case.present_name, case.allocation.slots.tolist()) == ("order.txt", [2])
    assert evaluate(running, kept).record_id == "order.txt"


def test_stored_objects_and_iso_text_name_the_same_case(running: Registry) -> None:
    named = PlacementRequest(profile="across", job="1", options=OPTIONS)
    at = running.fabrics.read("c").observed_at.isoformat()
    stored = replace(named, profile=running.profiles.read("across"), job=running.jobs.read("1"), at=at)
    one, other = place(running, named), place(running, stored)
    assert (other.record_id, other.case.snapshot) == (one.record_id, one.case.snapshot)
    kept = running.placements.read(one.record_id)
    assert evaluate(running, replace(stored, keep=kept)).record_id == one.record_id
    with pytest.raises(InvalidValue, match="time: 'noon' is no time"):
        place(running, replace(named, at="noon"))


def test_a_placement_that_cannot_be_saved_is_kept(running: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = DatabaseError("the database is in read-only mode")
    monkeypatch.setattr(running.placements, "save", MagicMock(side_effect=refused))
    request = PlacementRequest(profile="across", job="1", options=OPTIONS)
    report = place(running, request)
    assert report.evaluation.congestion_seconds == 8.0
    assert (report.record_id, report.unsaved) == ("", "the database is in read-only mode")
    assert all(one.unsaved and not one.record_id for one in pareto(running, request))


def test_a_placement_is_saved_and_may_be_kept_or_be_the_background_of_others(running: Registry) -> None:
    request = PlacementRequest(profile="across", job="1", options=OPTIONS)
    report = place(running, request)
    assert report.evaluation.congestion_seconds == 8.0  # pairs under one switch
    stored, saved = running.placements.read(report.record_id), report.record_id
    placed = report.placement.host_of_rank.tolist()
    assert (stored.job, stored.placement.host_of_rank.tolist()) == ("1", placed)
    assert resolve(running, replace(request, keep=saved)).present_name == saved
    for divisor in (None, 2.0):
        others = ((saved, divisor),)
        beside = PlacementRequest(profile="one-way", cluster="c", hosts=("a0", "a1"), background=others)
        added = sure(resolve(running, beside).costs.background)
        assert added.load.tolist() == (report.evaluation.link_bytes / (divisor or 1.0)).tolist()
    with pytest.raises(InvalidValue, match="for all of the other jobs, or for none"):
        resolve(running, replace(beside, background=((saved, 2.0), (saved, None))))


def test_a_request_without_hosts_or_a_present_placement_is_an_error(running: Registry) -> None:
    waiting = Job(id="7", state="PENDING", hosts=(), slots=(), source="test")
    running.save(Intake(cluster="c", jobs=(waiting,), source="test"))
    request = PlacementRequest(profile="one-way", cluster="c", hosts=("a0", "b0"))
    wrong: list[dict[str, Any]] = [{"cluster": None}, {"hosts": None}]
    for one in wrong:
        with pytest.raises(InvalidValue, match="a job, or a cluster with hosts, is needed"):
            resolve(running, replace(request, **one))
    with pytest.raises(InvalidValue, match="job '7' has no hosts: it is PENDING"):
        resolve(running, replace(request, job="7"))
    with pytest.raises(InvalidValue, match="a placement to evaluate is needed"):
        evaluate(running, request)
    assert subject_of(running, "c").plan is None
    with pytest.raises(UnknownName):
        subject_of(running, "c", T0 - timedelta(days=1))


def test_a_request_may_have_all_running_jobs_as_background(running: Registry) -> None:
    options = SearchOptions(steps=2000, workers=1)
    request = PlacementRequest(profile="across", job="1", cluster="c", options=options)
    request = with_running_jobs(running, request)
    background = sure(resolve(running, request).costs.background)
    assert (background.jobs, background.load.sum()) == (1, 4.0 * 3)
    assert place(running, request).evaluation.congestion_seconds == 12.0
    elsewhere = PlacementRequest(profile="across", cluster="c", hosts=("a0", "b0"), slots=2)
    assert sure(resolve(running, with_running_jobs(running, elsewhere)).costs.background).jobs == 2
    with pytest.raises(InvalidValue, match="name no other"):
        resolve(running, replace(request, background=(("p1", None),)))
    with pytest.raises(InvalidValue, match="cluster"):
        with_running_jobs(running, replace(request, cluster=None))


def test_each_placement_gets_a_run_and_files_are_not_saved(running: Registry) -> None:
    near, far = ("a0", "a1", "b0", "b1"), ("a0", "b0", "a1", "b1")
    placements = [HostOrder(hosts=hosts, name="".join(hosts)) for hosts in (near, far)]
    options = SimulationOptions(rounds=2)
    asked = SimulationRequest(profile="across", cluster="c", placements=placements, options=options)
    case = simulation_case(running, asked)
    assert [(one.name, one.saved) for one in case.placed] == [(one.name, False) for one in placements]
    report = simulate.simulate_placements(case, options, running)
    assert (report.complete, [run.id for run in report.runs]) == (True, [None, None])
    assert report.parameters["rounds"] == 2
    sums = [run.simulation.link_bytes.sum() for run in report.runs]
    assert sums == [4 * 8 * 2, 4 * 8 * 3]  # messages, bytes, links
    (busiest,) = report.busiest(report.runs[1], 1)
    assert busiest.link.bytes == 2 * 8
    assert busiest.link.source.name in {"A", "B"}


STEPS = SearchOptions(steps=4000, workers=1)
FEW = SearchOptions(steps=500, workers=1)


def measured_run(hosts: tuple[str, ...], **more: Any) -> MeasuredRun:
    """Return a run of a minute, a rank on each host."""
    fields: dict[str, Any] = {"cluster": "c", "application": "halo", "program": "x", "launcher": "l"}
    fields |= {"ranks": len(hosts), "hosts": hosts, "slots": (1,) * len(hosts), "wall_seconds": 60.0}
    return MeasuredRun(**{"started_at": T0} | fields | more)


def advised(registry: Registry, live: Live, options: SearchOptions = STEPS) -> list[Advised]:
    found = list(advise_all(registry, live, options))
    assert not [one for one in found if isinstance(one, Unloaded)]
    return [one for one in found if isinstance(one, Advised)]


def test_advice_weighs_each_job_against_the_others_and_saves_both_placements_once(running: Registry) -> None:
    before = traffic(running, "c")
    once = first, second = advised(running, before)
    advice = first.advice
    assert (advice.job, advice.present_seconds, advice.proposed_seconds) == ("1", 20.0, 12.0)
    assert advice.gain == pytest.approx(20 / 12)
    assert (advice.in_background, first.complete) == (1, True)
    assert (second.advice.job, second.advice.proposed, second.advice.gain) == ("2", None, 1.0)
    present, proposed = map(running.placements.read, (advice.present, sure(advice.proposed)))
    assert (present.role, proposed.role) == ("present", "proposed")
    assert (present.job, proposed.job, present.profile) == ("1", "1", proposed.profile)
    assert sure(present.evaluation).background.startswith("added: ")
    assert advice.moved == (present.placement.host_of_rank != proposed.placement.host_of_rank).sum()
    stored = {one.job: one for one in running.advices.list("c")}
    assert (stored["1"].gain, stored["2"].proposed) == (advice.gain, None)

    live = traffic(running, "c")
    assert live.evaluated == ()  # what was saved is taken
    np.testing.assert_allclose(live.shared.seconds, before.shared.seconds)
    assert {one.placement for one in live.shared.jobs} == {one.advice.present for one in once}
    history = len(running.placements.history("c"))
    again = advised(running, live)
    assert [one.advice.present for one in again] == [one.advice.present for one in once]
    assert len(running.placements.history("c")) == history
    by_job = {one.stored.job.id: one.advice for one in traffic(running, "c").running.jobs}
    assert sure(by_job["1"]).at == live.running.at


def test_a_placement_that_measured_worse_is_not_advised_again(running: Registry) -> None:
    first, _ = advised(running, traffic(running, "c"))
    proposed = running.placements.read(sure(first.advice.proposed))
    names = running.fabrics.read("c").fabric.names
    in_order = measured_run(tuple(names[host] for host in proposed.placement.allocation.hosts.tolist()))
    for seconds in (1.1, 1.2, 1.3):
        running.measured_runs.save(replace(in_order, wall_seconds=seconds, placement=proposed.id))
        running.measured_runs.save(replace(in_order, wall_seconds=seconds - 0.3))
    again, _ = advised(running, traffic(running, "c"))
    assert (again.advice.proposed, again.advice.gain, again.advice.moved) == (None, 1.0, 0)


def test_few_moves_are_kept_to_and_budgets_that_make_no_sense_are_refused(running: Registry) -> None:
    live = traffic(running, "c")
    with pytest.raises(InvalidValue, match="seconds"):
        next(advise_all(running, live, SearchOptions(seconds=-1.0)))
    (first, _) = advised(running, live, replace(STEPS, moves=2))
    assert first.advice.moved <= 2
    assert first.advice.gain == pytest.approx(20 / 12)  # two ranks change places


def test_an_interrupted_search_saves_its_best(running: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "mapping.questions.advise.find_placement",
        lambda *given, **more: replace(find_placement(*given, **more), complete=False),
    )
    (only,) = advised(running, traffic(running, "c"), FEW)
    assert not only.complete
    assert [one.job for one in running.advices.list("c")] == ["1"]


def test_a_job_that_cannot_be_searched_is_reported_and_the_others_have_their_turn(
    running: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(case: PlacementCase, *given: Any) -> Placement:
        if case.profile.ranks == 4:
            raise InvalidValue("test", "cannot be searched")
        return find_placement(case, *given)

    monkeypatch.setattr("mapping.questions.advise.find_placement", refused)
    first, second = advise_all(running, traffic(running, "c"), FEW)
    assert isinstance(first, Unloaded)
    assert (first.job.stored.job.id, first.reason) == ("1", "test: cannot be searched")
    assert isinstance(second, Advised)
    assert [one.job for one in running.advices.list("c")] == ["2"]


def test_advice_found_on_a_cluster_is_that_of_one_machine(running: Registry, dask: DaskCluster) -> None:
    live, progress = traffic(running, "c"), MagicMock()
    with open_cluster(dask.address) as cluster:
        found = list(advise_all(running, live, STEPS, progress, cluster))
    there = {one.advice.job: one for one in found if isinstance(one, Advised)}
    here = {one.advice.job: one for one in advise_all(running, live, STEPS) if isinstance(one, Advised)}
    assert set(there) == set(here) == {"1", "2"}
    for number, one in here.items():
        assert replace(there[number].advice, at=one.advice.at) == one.advice  # ids are of content
        assert there[number].complete
    assert progress.call_args.args[:2] == ("jobs", 2)


def test_running_jobs_share_links_and_those_left_out_have_a_reason(running: Registry) -> None:
    live = traffic(running, "c")
    assert {one.job: one.user for one in live.shared.jobs} == {"1": "ann", "2": "bob"}
    assert {one.application for one in live.shared.jobs} == {"halo", "stream"}
    assert set(live.evaluated) == {"1", "2"}
    (hot, back) = live.shared.hottest(2, network_only=True)
    assert (str(hot.load), hot.load.seconds) == ("A:10 -> B:10", 20.0)
    assert back.load.seconds == 16.0
    assert [(user.job, user.bytes) for user in hot.users] == [("1", 16.0), ("2", 4.0)]
    assert [one.stored.job.id for one in live.without_profile] == ["3"]
    assert [one.job.stored.job.id for one in live.unloaded] == ["5"]
    assert "arbitrary" in live.unloaded[0].reason
    assert (live.routing, live.because) == ("shortest-paths", "the fabric has no forwarding tables")
    earlier = traffic(running, "c", T0 + timedelta(minutes=30))
    assert {one.job for one in earlier.shared.jobs} == {"1", "2", "4"}
    with pytest.raises(UnknownName):
        traffic(running, "c", T0 - timedelta(minutes=1))
    with pytest.raises(UnknownName, match="closest: c"):
        traffic(running, "cc")


def test_pairs_of_ranks_of_one_job_on_a_link_and_an_imagined_change(running: Registry) -> None:
    live = traffic(running, "c")
    (hot,) = live.shared.hottest(1, network_only=True)
    found = pairs_on(running, live, "1", hot.row)
    pairs = list(zip(found.sender.tolist(), found.receiver.tolist(), found.bytes, strict=True))
    assert pairs == [(0, 1, 8.0), (2, 3, 8.0)]
    with pytest.raises(UnknownName, match="running job with traffic '3'"):
        pairs_on(running, live, "3", hot.row)
    assert live.job("3").stored.job.hosts == ("a1",)
    with pytest.raises(UnknownName, match="there is no running job '4'"):
        live.job("4")
    cable = imagine(running, live, Change(added=("A:B",)))
    assert cable.before is live.shared
    seconds = {one.job: (one.before_seconds, one.after_seconds) for one in cable.jobs}
    assert seconds == {"1": (20.0, 12.0), "2": (20.0, 12.0)}  # now a0's own cable, with what job 2 sends
    gone = imagine(running, live, Change(down_switches=("B",)))
    assert {one.job: one.unreachable_pairs for one in gone.jobs} == {"1": 4, "2": 1}


def test_saved_loads_of_another_routing_or_profile_are_not_taken(running: Registry) -> None:
    options = SearchOptions(steps=500, workers=1)
    assert len(list(advise_all(running, traffic(running, "c"), options))) == 2
    assert set(traffic(running, "c", costs=CostModel(routing="up-down")).evaluated) == {"1", "2"}
    assert set(traffic(running, "c", costs=CostModel(rails="same-rail")).evaluated) == {"1", "2"}
    other = Profile.from_edges([0], [1], [5.0], name="other", application="stream")
    running.save(Intake(profiles=(other,)))
    running.jobs.attach("2", "other")
    live = traffic(running, "c")
    assert live.evaluated == ("2",)
    assert live.shared.hottest(1, network_only=True)[0].load.seconds == 21.0


HOUR = timedelta(hours=1)


def test_jobs_that_share_the_uplink_slow_each_other_and_advice_for_them_counts(running: Registry) -> None:
    """Job 1 uses 16/64 of an uplink of 1 byte/s and job 2 4/8 of it: job 1 waits 32 s instead of 16 s."""
    today = read_today(running, "c", T0 - HOUR)
    assert [one.load.job for one in today.slowed] == ["1", "2"]
    assert [one.slowdown for one in today.slowed] == pytest.approx([1 + 16 / 64, 1 + (4 / 0.75 - 4) / 8])
    assert {one.link.load.seconds for one in today.slowed} == {20.0}
    assert [user.job for user in today.slowed[0].link.users] == ["1", "2"]
    assert (today.advice, today.advised) == ((), 0)
    assert (today.changes, today.scanned, today.failed) == (None, True, ())
    assert {name: one.state for name, one in today.sources.items()} == {"test": "stale"}  # observed long ago
    list(advise_all(running, traffic(running, "c"), SearchOptions(steps=4000, workers=1)))
    today = read_today(running, "c", T0 - HOUR)
    (advice,) = today.advice
    assert advice.gain == pytest.approx(20 / 12)
    assert (advice.job, today.advised) == ("1", 2)


def test_changes_are_those_since_then_and_unknown_without_a_scan(running: Registry) -> None:
    running.save(Intake(cluster="c", fabric=two_leaves(uplinks=2), observed_at=T0 + HOUR, source="test"))
    today = read_today(running, "c", T0 + HOUR / 2)
    assert summary(sure(today.changes)).startswith("1 cable appeared")
    assert today.scanned
    later = read_today(running, "c", T0 + 2 * HOUR)
    assert not later.scanned
    first = read_today(running, "c", T0 - HOUR).changes  # those since the first scan
    assert first is not None
    assert (first.start, summary(first)) == (T0, summary(sure(today.changes)))


def test_sources_that_fail_and_failed_runs_since_then(running: Registry) -> None:
    now = datetime.now(UTC)
    attempt = Attempt(cluster="c", started_at=now, files=("scan.txt",), formats=("test",))
    running.runs.failed(attempt, InputError("truncated", path="scan.txt"), 0.1)
    today = read_today(running, "c", now - HOUR)
    assert [run.files for run in today.failed] == [("scan.txt",)]
    assert "truncated" in today.sources["test"].words
    assert read_today(running, "c", datetime.now(UTC)).failed == ()
    with pytest.raises(UnknownName, match="nosuch"):
        read_today(running, "nosuch", now)


MINUTE = timedelta(minutes=1)


def save_on_two_leaves(
    registry: Registry, jobs: tuple[Job, ...] = (), profiles: tuple[Profile, ...] = (), **more: Any
) -> None:
    intake = Intake(cluster="c", observed_at=T0, jobs=jobs, profiles=profiles, source="test", **more)
    registry.save(intake)


@pytest.fixture
def two_jobs(registry: Registry) -> Registry:
    """Job 1 sends 8 bytes from a0 to b0; job 2 sends 2 bytes from a1 to b1, as job 3 may on b1."""
    eight = Profile.from_edges([0], [1], [8.0], name="eight")
    two = Profile.from_edges([0], [1], [2.0], name="two")
    jobs = (job("1", ("a0", "b0")), job("2", ("a1", "b1")), job("3", ("b1",)))
    save_on_two_leaves(registry, jobs, (eight, two), fabric=FABRIC)
    registry.jobs.attach("1", "eight")
    registry.jobs.attach("2", "two")
    return registry


def measured(
    live: Live, *, start: timedelta = MINUTE, unsure: str = "", **at: float
) -> dict[str, float | None]:
    """Return the time of an iteration of each job by the rate of some links, written `DEVICE_PORT`."""
    rate = np.full(len(live.fabric.links), np.nan)
    for name, value in at.items():
        rate[find_link(live.fabric, name.replace("_", ":"))] = value
    none = np.zeros(len(rate))
    lower = none > 0
    if unsure:
        lower[find_link(live.fabric, unsure)] = True
    known = dict.fromkeys(("bytes_per_second", "peak_bytes_per_second", "share"), rate)
    known |= {f"{name}_per_second": none for name in ("wait_ticks", "ecn_marked", "pauses")}
    bounds: dict[str, Any] = {"at_least": lower, "by": lower.astype(np.uint8)}
    rates = LinkRates(start=T0 + start, end=T0 + 2 * MINUTE, **known, **bounds)
    found = with_measured_iterations(live, rates)
    for one in found.shared.jobs:
        assert (one.iteration_from == "measured") == (one.iteration_seconds is not None)
    return {one.job: one.iteration_seconds for one in found.shared.jobs}


def test_bytes_of_the_profile_over_the_rates_of_own_cables(two_jobs: Registry) -> None:
    """8 bytes at 0.25 and 8 bytes at 0.15 byte/s; the cable of b1 may carry traffic of job 3."""
    live = traffic(two_jobs, "c")
    assert measured(live, a0_1=0.25, B_1=0.15, a1_1=0.5, B_2=9.0) == {
        "1": pytest.approx(16 / 0.4),
        "2": pytest.approx(2 / 0.5),
    }
    assert measured(live, a0_1=0.25) == {"1": pytest.approx(8 / 0.25), "2": None}
    assert measured(live, A_10=0.25, B_2=9.0) == {"1": None, "2": None}  # not a cable of one job


def test_what_does_not_count_and_a_stated_time_that_counts_more(two_jobs: Registry) -> None:
    live = traffic(two_jobs, "c")
    assert measured(live, a0_1=0.25, start=-MINUTE)["1"] is None  # counted before the job ran
    assert measured(live, a0_1=0.25, unsure="a0:1")["1"] is None  # a lower bound
    assert measured(live, a0_1=0.0)["1"] is None
    assert with_measured_iterations(live, None) is live
    two_jobs.jobs.attach("1", "eight", iteration_seconds=7.0)
    live = traffic(two_jobs, "c")
    times = {one.job: (one.iteration_seconds, one.iteration_from) for one in live.shared.jobs}
    assert times == {"1": (7.0, "stated"), "2": (None, "")}
    assert with_counters(two_jobs, live) is live  # there are no counters


def test_counters_of_the_registry(two_jobs: Registry) -> None:
    """Host a0 has no GUID here: the port of its switch counts what a0 sends."""
    counted = [{"xmit_bytes": (0, False), "rcv_bytes": (size, False)} for size in (0, 30)]
    sweeps = tuple(CounterSweep.of(T0 + n * MINUTE, {(0xA0, 0, 1): one}) for n, one in enumerate(counted))
    two_jobs.save(Intake(cluster="c", counters=sweeps, source="test"))
    found = with_counters(two_jobs, traffic(two_jobs, "c"))
    times = {one.job: one.iteration_seconds for one in found.shared.jobs}
    assert times == {"1": pytest.approx(8 / 0.5), "2": None}


def test_the_utilisation_is_known_once_all_jobs_have_times_and_scales_each(two_jobs: Registry) -> None:
    """Job 1 sends its 8 bytes every 16 s, job 2 its 2 bytes every 8 s."""
    two_jobs.jobs.attach("1", "eight", iteration_seconds=16.0)
    assert utilisation(traffic(two_jobs, "c", T0 + MINUTE), None) is None
    two_jobs.jobs.attach("2", "two", iteration_seconds=8.0)
    live = traffic(two_jobs, "c", T0 + MINUTE)
    share = sure(utilisation(live, None))
    capacity = live.fabric.links.capacity
    first, second = find_link(live.fabric, "a0:1"), find_link(live.fabric, "a1:1")
    assert share[first] == pytest.approx(0.5 / capacity[first])
    assert share[second] == pytest.approx(0.25 / capacity[second])
    assert live.shared.seconds[first] == pytest.approx(8.0 / capacity[first])


HOSTS = ("a0", "b0", "a1", "b1")


def run(registry: Registry, minutes: float, profile: str | None = "across") -> MeasuredRun:
    """Return a run of job 1, ranks in order, whose middle is so many minutes after `T0`."""
    stored = None if profile is None else registry.profiles.read(profile).id
    return measured_run(HOSTS, profile=stored, job="1", started_at=T0 + timedelta(minutes=minutes - 0.5))


def test_rates_of_other_jobs_add_up_on_the_links_of_a_run(running: Registry) -> None:
    """Jobs 2 and 4, which ends after an hour, send 4 bytes in 8 s from a0 over the uplink of 1 byte/s."""
    own = run(running, 120)
    assert other_load(running, own) == pytest.approx(0.5)
    assert other_load(running, run(running, 30)) == pytest.approx(1.0)
    assert other_load(running, replace(own, job=None)) == pytest.approx(0.5 + 16 / 64)
    back = replace(run(running, 120, "one-way"), ranks=2, hosts=("a1", "a0"), slots=(1, 1))
    assert other_load(running, back) == 0.0
    options = SearchOptions(steps=200, workers=1)
    found = place(running, PlacementRequest(profile="across", cluster="c", hosts=HOSTS, options=options))
    assert found.evaluation.congestion_seconds == 8.0  # both pairs stay on their leaf switch
    assert other_load(running, replace(own, placement=found.record_id)) == pytest.approx(0.5 / 1.0)


def test_what_is_unknown_is_none_and_nothing_else_is_zero(registry: Registry) -> None:
    save_on_two_leaves(registry, profiles=(ACROSS, ONE_WAY), fabric=FABRIC)
    assert other_load(registry, run(registry, 5)) == 0.0
    save_on_two_leaves(registry, (job("1", HOSTS), job("3", ("a1",))))
    assert other_load(registry, run(registry, 5)) is None
    registry.jobs.attach("3", "one-way")
    assert other_load(registry, run(registry, 5)) is None
    save_on_two_leaves(registry, (job("2", ("a0", "b1")),))
    registry.jobs.attach("2", "one-way", iteration_seconds=16.0)
    assert other_load(registry, run(registry, 5)) == pytest.approx(0.25)
    assert other_load(registry, run(registry, 5, None)) is None


CAPACITY = 50e9


def save(registry: Registry, minutes: float, sent: int, errors: int) -> None:
    counters = {"xmit_bytes": (sent, False), "rcv_errors": (errors, False)}
    sweep = CounterSweep.of(at(minutes), {(LEAF_GUID, 0, 3): counters})
    registry.save(Intake(cluster="toy", counters=(sweep,)))


def ports(registry: Registry, since: datetime | None = None, until: float = 5000) -> PortTable:
    return read_ports(registry, traffic(registry, "toy", at(until)), ErrorLimits(), since)


def test_errors_are_those_of_a_day_and_use_that_between_the_last_two_sweeps(registry: Registry) -> None:
    busy_cluster.fill(registry, busy_cluster.job("7", 2))
    hour = 60
    for hours, errors in ((0, 0), (30, 100), (53, 120), (54, 121)):
        save(registry, 10 + hours * hour, int(CAPACITY) * hours, errors)
    table = ports(registry)
    grown, rates = sure(table.errors).grown, sure(table.rates)
    assert (grown.start, grown.end) == (at(10 + 30 * hour), at(10 + 54 * hour))
    assert (rates.start, rates.end) == (at(10 + 53 * hour), at(10 + 54 * hour))
    (port, *_) = table.top(9)
    assert (port.name, port.errors[0].growth) == ("leaf0:3", 21)
    assert port.sent_share == pytest.approx(1 / 3600)
    assert port.jobs == ()
    earlier = ports(registry, until=10 + 53 * hour)
    assert earlier.top(1)[0].errors[0].growth == 120  # since the sweep before the day
    chosen = ports(registry, at(10 + 20 * hour))
    assert chosen.top(1)[0].errors[0].growth == 121
    assert (sure(chosen.rates).start, sure(chosen.rates).end) == (at(10), at(10 + 54 * hour))


def test_jobs_without_a_known_load_are_on_the_ports_of_their_hosts(registry: Registry) -> None:
    busy_cluster.fill(registry, busy_cluster.job("7", 2), busy_cluster.job("8", 2, hosts=("node03",)))
    registry.save(Intake(cluster="toy", observed_at=at(3), fabric=fat_tree()))
    sent = {"xmit_bytes": (5, False)}
    for minutes in (10, 20):
        ends = {(LEAF_GUID, 0, 1): sent, (LEAF_GUID + 1, 0, 2): {"rcv_errors": (int(minutes), False)}}
        registry.save(Intake(cluster="toy", counters=(CounterSweep.of(at(minutes), ends),)))
    (port,) = ports(registry).top(9)
    assert (port.name, port.to) == ("leaf1:2", "node03:1")
    assert set(port.jobs) == {"7", "8"}
