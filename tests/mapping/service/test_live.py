"""Traffic of running jobs from the registry, pairs of ranks on a link, and imagined changes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mapping.distances.cost_model import CostModel
from mapping.placement.search.options import SearchOptions
from mapping.service.advising import advise_all
from mapping.service.live import imagine, pairs_on, traffic
from mapping.traffic.what_if import Change
from registry.errors import InvalidValue, UnknownName
from registry.model import Profile
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.running_jobs import FABRIC, T0


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


def test_jobs_and_their_load_at_an_earlier_time(running: Registry) -> None:
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


def test_nothing_running_is_an_empty_picture_and_no_error(registry: Registry) -> None:
    registry.save(Intake(cluster="c", fabric=FABRIC, observed_at=T0, source="test"))
    live = traffic(registry, "c")
    assert (len(live.shared), live.running.jobs, live.evaluated) == (0, (), ())
    assert list(advise_all(registry, live, SearchOptions())) == []
    assert imagine(registry, live, Change(down_switches=("A",))).jobs == ()


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
