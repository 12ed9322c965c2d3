"""Running jobs read from the registry: whose traffic is where, advice that is saved, imagined changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from mapping.distances.cost_model import CostModel
from mapping.placement.case import PlacementCase
from mapping.placement.search.options import SearchOptions
from mapping.placement.search.placing import find_placement
from mapping.service.advising import Advised, advise_all
from mapping.service.live import Live, Unloaded, imagine, pairs_on, traffic, with_running_jobs
from mapping.service.placing import place, resolve
from mapping.service.request import PlacementRequest
from mapping.traffic.what_if import Change
from registry.errors import InvalidValue, UnknownName
from registry.model import Job, Placement, Profile
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.traffic_jobs import two_leaves

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
FABRIC = two_leaves(uplinks=1)
ACROSS = Profile.from_edges([0, 1, 2, 3], [1, 0, 3, 2], [8.0] * 4, name="across", application="halo")
ONE_WAY = Profile.from_edges([0], [1], [4.0], name="one-way", application="stream")


def job(number: str, hosts: tuple[str, ...], **more: Any) -> Job:
    told: dict[str, Any] = {"user": "ann", "state": "RUNNING", "started_at": T0, "source": "test"} | more
    return Job(id=number, hosts=hosts, slots=(1,) * len(hosts), **told)


@pytest.fixture
def running(registry: Registry) -> Registry:
    """Job 1 sends 16 bytes each way over the one uplink, job 2 sends 4 from A to B; others cannot be told."""
    jobs = (
        job("1", ("a0", "b0", "a1", "b1")),
        job("2", ("a0", "b1"), user="bob"),
        job("3", ("a1",)),  # no profile
        job("4", ("a0", "b0"), ended_at=T0 + timedelta(hours=1)),
        job("5", ("a1", "b0"), distribution="arbitrary"),
        job("6", ("a1", "b0"), state="PENDING", started_at=None),
    )
    registry.save(
        Intake(
            cluster="c", fabric=FABRIC, observed_at=T0, jobs=jobs, profiles=(ACROSS, ONE_WAY), source="test"
        )
    )
    registry.jobs.attach("1", "across")
    for number in ("2", "4", "5", "6"):
        registry.jobs.attach(number, "one-way")
    return registry


def advised(registry: Registry, live: Live, **more: Any) -> list[Advised]:
    found = list(advise_all(registry, live, SearchOptions(**({"steps": 4000, "workers": 1} | more))))
    assert not [one for one in found if isinstance(one, Unloaded)]
    return [one for one in found if isinstance(one, Advised)]


def test_running_jobs_share_links_and_those_left_out_are_told_with_the_reason(running: Registry) -> None:
    live = traffic(running, "c")
    assert {one.job: one.user for one in live.shared.jobs} == {"1": "ann", "2": "bob"}
    assert {one.application for one in live.shared.jobs} == {"halo", "stream"}
    assert set(live.evaluated) == {"1", "2"}
    (hot, back) = live.shared.hottest(2, network_only=True)
    assert (str(hot.load), hot.load.seconds) == ("A port 10 -> B port 10", 20.0)
    assert back.load.seconds == 16.0
    assert [(user.job, user.bytes) for user in hot.users] == [("1", 16.0), ("2", 4.0)]
    assert [one.stored.job.id for one in live.without_profile] == ["3"]
    assert [one.job.stored.job.id for one in live.unloaded] == ["5"]
    assert "arbitrary" in live.unloaded[0].reason
    assert (live.routing, live.because) == ("shortest-paths", "the fabric has no forwarding tables")


def test_a_time_tells_what_ran_then(running: Registry) -> None:
    live = traffic(running, "c", T0 + timedelta(minutes=30))
    assert {one.job for one in live.shared.jobs} == {"1", "2", "4"}
    with pytest.raises(UnknownName):
        traffic(running, "c", T0 - timedelta(minutes=1))
    with pytest.raises(UnknownName, match="closest: c"):
        traffic(running, "cc")


def test_pairs_of_ranks_of_one_job_on_a_link(running: Registry) -> None:
    live = traffic(running, "c")
    (hot,) = live.shared.hottest(1, network_only=True)
    found = pairs_on(running, live, "1", hot.row)
    assert list(zip(found.sender.tolist(), found.receiver.tolist(), found.bytes, strict=True)) == [
        (0, 1, 8.0),
        (2, 3, 8.0),
    ]
    with pytest.raises(UnknownName, match="running job with traffic '3'"):
        pairs_on(running, live, "3", hot.row)
    assert live.job("3").stored.job.hosts == ("a1",)
    with pytest.raises(UnknownName, match="there is no running job '4'"):
        live.job("4")


def test_advice_weighs_each_job_against_the_others_and_saves_both_placements(running: Registry) -> None:
    live = traffic(running, "c")
    first, second = advised(running, live)
    assert (first.advice.job, first.advice.present_seconds, first.advice.proposed_seconds) == (
        "1",
        20.0,
        12.0,
    )
    assert first.advice.gain == pytest.approx(20 / 12)
    assert (first.advice.in_background, first.complete) == (1, True)
    assert (second.advice.job, second.advice.proposed, second.advice.gain) == ("2", None, 1.0)
    assert first.advice.proposed is not None
    present = running.placements.read(first.advice.present)
    proposed = running.placements.read(first.advice.proposed)
    assert (present.role, proposed.role) == ("present", "proposed")
    assert (present.job, proposed.job, present.profile) == ("1", "1", proposed.profile)
    assert present.evaluation is not None
    assert present.evaluation.background.startswith("added: ")
    assert first.advice.moved == (present.placement.host_of_rank != proposed.placement.host_of_rank).sum()
    stored = {one.job: one for one in running.advices.list("c")}
    assert stored["1"].gain == first.advice.gain
    assert stored["2"].proposed is None


def test_what_advice_saved_is_taken_the_next_time_and_nothing_is_saved_twice(running: Registry) -> None:
    before = traffic(running, "c")
    once = advised(running, before)
    live = traffic(running, "c")
    assert live.evaluated == ()
    np.testing.assert_allclose(live.shared.seconds, before.shared.seconds)
    assert {one.placement for one in live.shared.jobs} == {one.advice.present for one in once}
    history = len(running.placements.history("c"))
    again = advised(running, live)
    assert [one.advice.present for one in again] == [one.advice.present for one in once]
    assert len(running.placements.history("c")) == history
    by_job = {one.stored.job.id: one.advice for one in traffic(running, "c").running.jobs}
    assert by_job["1"] is not None
    assert by_job["1"].at == live.running.at


def test_saved_loads_of_another_routing_or_profile_are_not_taken(running: Registry) -> None:
    advised(running, traffic(running, "c"))
    assert set(traffic(running, "c", costs=CostModel(routing="up-down")).evaluated) == {"1", "2"}
    assert set(traffic(running, "c", costs=CostModel(rails="same-rail")).evaluated) == {"1", "2"}
    other = Profile.from_edges([0], [1], [5.0], name="other", application="stream")
    running.save(Intake(profiles=(other,)))
    running.jobs.attach("2", "other")
    live = traffic(running, "c")
    assert live.evaluated == ("2",)
    assert live.shared.hottest(1, network_only=True)[0].load.seconds == 21.0


def test_few_moves_are_kept_to(running: Registry) -> None:
    (first, _) = advised(running, traffic(running, "c"), moves=2)
    assert first.advice.moved <= 2
    assert first.advice.gain == pytest.approx(20 / 12)  # two ranks change places


def test_after_an_interrupt_what_is_done_stays_saved(
    running: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []

    def interrupted(*given: Any, **more: Any) -> Placement:
        calls.append(given)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return find_placement(*given, **more)

    monkeypatch.setattr("mapping.service.advising.find_placement", interrupted)
    found: list[Advised | Unloaded] = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(advise_all(running, traffic(running, "c"), SearchOptions(steps=500, workers=1)))
    assert [one.job for one in running.advices.list("c")] == ["1"]


def test_a_search_that_is_interrupted_saves_its_best_and_is_the_last(
    running: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mapping.service.advising.find_placement",
        lambda *given, **more: replace(find_placement(*given, **more), complete=False),
    )
    (only,) = advised(running, traffic(running, "c"), steps=500)
    assert not only.complete
    assert [one.job for one in running.advices.list("c")] == ["1"]


def test_a_job_that_cannot_be_searched_is_reported_and_the_others_have_their_turn(
    running: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(case: PlacementCase, *given: Any) -> Placement:
        if case.profile.ranks == 4:
            raise InvalidValue("test", "cannot be searched")
        return find_placement(case, *given)

    monkeypatch.setattr("mapping.service.advising.find_placement", refused)
    first, second = advise_all(running, traffic(running, "c"), SearchOptions(steps=500, workers=1))
    assert isinstance(first, Unloaded)
    assert (first.job.stored.job.id, first.reason) == ("1", "test: cannot be searched")
    assert isinstance(second, Advised)
    assert [one.job for one in running.advices.list("c")] == ["2"]


def test_budgets_that_make_no_sense_are_refused_before_anything_is_done(running: Registry) -> None:
    with pytest.raises(InvalidValue, match="seconds"):
        next(advise_all(running, traffic(running, "c"), SearchOptions(seconds=-1.0)))


def test_an_imagined_cable_and_switch(running: Registry) -> None:
    live = traffic(running, "c")
    found = imagine(running, live, Change(added=("A:B",)))
    assert found.before is live.shared
    assert {one.job: (one.before_seconds, one.after_seconds) for one in found.jobs} == {
        "1": (20.0, 12.0),  # now a0's own cable, with what job 2 sends
        "2": (20.0, 12.0),
    }
    gone = imagine(running, live, Change(down_switches=("B",)))
    assert {one.job: one.unreachable_pairs for one in gone.jobs} == {"1": 4, "2": 1}
    with pytest.raises(InvalidValue, match="job 2 is left without hosts"):
        imagine(running, live, Change(drained=("a0", "b1")))


def test_a_request_may_have_all_running_jobs_as_background(running: Registry) -> None:
    options = SearchOptions(steps=2000, workers=1)
    request = PlacementRequest(profile="across", job="1", cluster="c", options=options)
    request = with_running_jobs(running, request)
    background = resolve(running, request).costs.background
    assert background is not None
    assert background.jobs == 1
    assert background.load.sum() == 4.0 * 3
    assert place(running, request).evaluation.congestion_seconds == 12.0
    elsewhere = PlacementRequest(profile="across", cluster="c", hosts=("a0", "b0"), slots=2)
    beside = resolve(running, with_running_jobs(running, elsewhere)).costs.background
    assert beside is not None
    assert beside.jobs == 2
    with pytest.raises(InvalidValue, match="name no other"):
        resolve(running, replace(request, background=(("p1", None),)))
    with pytest.raises(InvalidValue, match="cluster"):
        with_running_jobs(running, replace(request, cluster=None))


def test_nothing_running_is_an_empty_picture_and_no_error(registry: Registry) -> None:
    registry.save(Intake(cluster="c", fabric=FABRIC, observed_at=T0, source="test"))
    live = traffic(registry, "c")
    assert (len(live.shared), live.running.jobs, live.evaluated) == (0, (), ())
    assert list(advise_all(registry, live, SearchOptions())) == []
    assert imagine(registry, live, Change(down_switches=("A",))).jobs == ()
