"""All jobs' loads on shared links: sums, users, slowdowns by hand and by a slow loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapping.distances.cost_model import CostModel
from mapping.selfcheck import oracles
from mapping.traffic.job_loads import JobTraffic, Loader
from mapping.traffic.shared_load import JobLoad, SharedLoad
from registry.errors import DisconnectedAllocation, InvalidPlacement, InvalidValue, UnknownName
from registry.model import Fabric
from registry.model.loaded_links import LoadedLinks
from tests.support.traffic_jobs import SHORTEST, job_between, running_jobs, shared_load, two_leaves

Jobs = tuple[Fabric, tuple[JobTraffic, ...]]


@settings(deadline=None)
@given(running_jobs())
def test_the_load_of_a_link_is_the_sum_of_what_each_job_alone_puts_there(case: Jobs) -> None:
    fabric, jobs = case
    shared = shared_load(fabric, jobs)
    alone = [oracles.cost(fabric, one.profile, one.placement).link_bytes for one in jobs]
    np.testing.assert_allclose(shared.link_bytes, sum(alone))
    np.testing.assert_allclose(shared.seconds, sum(alone) / fabric.links.capacity)
    np.testing.assert_allclose(
        shared.matrix(np.arange(len(fabric.links))), np.stack(alone) / fabric.links.capacity
    )
    for one, load in zip(shared.jobs, alone, strict=True):
        np.testing.assert_allclose(one.link_bytes, load)


@settings(deadline=None)
@given(running_jobs(), st.booleans())
def test_hot_links_come_by_falling_seconds_with_users_whose_parts_make_the_whole(
    case: Jobs, network_only: bool
) -> None:
    fabric, jobs = case
    shared = shared_load(fabric, jobs)
    seconds = np.where(fabric.network_link | (not network_only), shared.seconds, 0.0)
    links = shared.hottest(1000, network_only=network_only)
    assert [link.row for link in links] == sorted(
        np.flatnonzero(seconds).tolist(), key=lambda row: (-seconds[row], row)
    )
    assert shared.hottest(2, network_only=network_only) == links[:2]
    for link in links:
        assert sum(user.bytes for user in link.users) == pytest.approx(link.load.bytes)
        assert sum(user.part for user in link.users) == pytest.approx(1.0)
        assert [user.bytes for user in link.users] == sorted((u.bytes for u in link.users), reverse=True)
        assert link.network == fabric.network_link[link.row]
        for user in link.users:
            assert jobs[user.number].job == user.job
            assert user.bytes == pytest.approx(shared.jobs[user.number].link_bytes[link.row])


@settings(deadline=None)
@given(running_jobs())
def test_worst_links_of_jobs_alone_and_together(case: Jobs) -> None:
    fabric, jobs = case
    shared = shared_load(fabric, jobs)
    for number, one in enumerate(shared.jobs):
        own = one.link_bytes
        alone = max((own[row] / fabric.links.capacity[row] for row in range(len(own)) if own[row]), default=0)
        every = max((shared.seconds[row] for row in range(len(own)) if own[row]), default=0)
        assert shared.isolated_seconds()[number] == pytest.approx(alone)
        assert shared.together_seconds()[number] == pytest.approx(every)


@settings(deadline=None)
@given(running_jobs())
def test_the_background_of_a_job_is_all_that_others_send(case: Jobs) -> None:
    fabric, jobs = case
    shared = shared_load(fabric, jobs)
    for one in shared.jobs:
        others = [other for other in shared.jobs if other is not one and len(other.loads.link)]
        background = shared.background(one.job)
        if not others:
            assert background is None
            continue
        assert background is not None
        assert background.jobs == len(others)
        np.testing.assert_allclose(
            background.link_bytes(fabric), sum(other.link_bytes for other in others), atol=1e-12
        )
    everyone = shared.background("a job that does not run")
    if everyone is not None:
        np.testing.assert_allclose(everyone.link_bytes(fabric), shared.link_bytes)


def test_two_jobs_over_one_cable_by_hand() -> None:
    fabric = two_leaves(uplinks=1)
    jobs = (
        job_between(fabric, "1", [("a0", "b0", 6.0)], user="ann"),
        job_between(fabric, "2", [("a1", "b1", 2.0)], user="bob"),
        job_between(fabric, "3", [("b0", "b1", 1.0)]),
    )
    shared = shared_load(fabric, jobs)
    assert shared.isolated_seconds().tolist() == [6.0, 2.0, 1.0]
    assert shared.together_seconds().tolist() == [8.0, 8.0, 3.0]  # job 3 shares b1's cable with job 2
    (hot,) = shared.hottest(1)
    assert str(hot.load) == "A:10 -> B:10"
    assert [(user.job, user.user, user.bytes, user.part) for user in hot.users] == [
        ("1", "ann", 6.0, 0.75),
        ("2", "bob", 2.0, 0.25),
    ]
    pair = shared.worst_shared_link()
    assert pair is not None
    assert (pair.row, pair.users[0].job, pair.users[1].job) == (hot.row, "1", "2")


def test_there_is_no_worst_link_if_none_is_shared() -> None:
    fabric = two_leaves()
    jobs = (job_between(fabric, "1", [("a0", "a1", 6.0)]), job_between(fabric, "2", [("b0", "b1", 2.0)]))
    assert shared_load(fabric, jobs).worst_shared_link() is None
    assert SharedLoad.of(fabric, ()).worst_shared_link() is None


def test_nothing_running_is_an_empty_picture() -> None:
    fabric = two_leaves()
    shared = SharedLoad.of(fabric, ())
    assert (len(shared), shared.hottest(5), shared.together_seconds().tolist()) == (0, (), [])
    assert not shared.seconds.any()
    assert shared.links([0])[0].users == ()


def test_loads_of_another_fabric_a_job_twice_and_unknown_rows_and_jobs_are_refused() -> None:
    fabric = two_leaves()
    load = JobLoad(job="1", loads=LoadedLinks.of(np.ones(3)))
    with pytest.raises(InvalidValue, match="job 1: 3 link loads for a fabric of 12 links"):
        SharedLoad.of(fabric, [load])
    fits = JobLoad(job="1", loads=LoadedLinks.of(np.ones(12)))
    with pytest.raises(InvalidValue, match="twice"):
        SharedLoad.of(fabric, [fits, fits])
    shared = SharedLoad.of(fabric, [fits])
    for row in (-1, 12):
        with pytest.raises(InvalidValue, match="must be from 0 to"):
            shared.links([row])
    with pytest.raises(UnknownName, match="closest: 1"):
        shared.index("11")


def test_routes_built_once_for_all_jobs_give_each_what_routes_of_its_own_give() -> None:
    fabric = two_leaves(uplinks=3)
    jobs = (
        job_between(fabric, "1", [("a0", "b0", 6.0), ("b0", "a1", 1.0)]),
        job_between(fabric, "2", [("b1", "a1", 2.0)]),
    )
    for routing in ("shortest-paths", "up-down", "ecmp:paths=4", "ugal", "least-loaded"):
        together = Loader(fabric, [one.placement for one in jobs], CostModel(routing=routing))
        for one in jobs:
            own = Loader(fabric, [one.placement], CostModel(routing=routing)).load(one.profile, one.placement)
            load = together.load(one.profile, one.placement)
            np.testing.assert_allclose(load.dense(), own.dense())


def test_a_job_whose_ranks_do_not_fit_its_profile_is_refused() -> None:
    fabric = two_leaves()
    one = job_between(fabric, "1", [("a0", "b0", 6.0)])
    two = job_between(fabric, "2", [("a0", "b0", 6.0), ("a1", "b0", 1.0)])
    loader = Loader(fabric, [one.placement, two.placement], SHORTEST)
    with pytest.raises(InvalidPlacement, match=r"2 ranks are placed, the profile has 3$"):
        loader.load(two.profile, one.placement)


def test_what_cannot_be_delivered_is_counted_and_the_rest_is_loaded() -> None:
    fabric = two_leaves(uplinks=0)
    one = job_between(fabric, "1", [("a0", "b0", 6.0), ("a0", "a1", 2.0), ("b1", "a0", 3.0)])
    loader = Loader(fabric, [one.placement], SHORTEST)
    with pytest.raises(DisconnectedAllocation, match="no path of the fabric leads from host 'a0'"):
        loader.load(one.profile, one.placement)
    found = loader.deliver(one.profile, one.placement)
    assert (found.unreachable_pairs, found.unreachable_bytes) == (2, 9.0)
    assert found.loads.dense().sum() == 4.0  # a0 -> A -> a1
