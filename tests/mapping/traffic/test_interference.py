"""Slowdowns by shared links: profiles scaled by the time of an iteration, by hand and by a slow loop."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapping.traffic.device_names import link_text
from mapping.traffic.interference import interference
from mapping.traffic.job_loads import JobTraffic
from mapping.traffic.shared_load import SharedLoad
from registry.model import Fabric
from tests.support.traffic_jobs import job_between, running_jobs, shared_load, two_leaves

Jobs = tuple[Fabric, tuple[JobTraffic, ...]]


def timed(shared: SharedLoad, *seconds: float | None) -> SharedLoad:
    """Return the jobs with these times of an iteration."""
    jobs = (replace(one, iteration_seconds=time) for one, time in zip(shared.jobs, seconds, strict=True))
    return replace(shared, jobs=tuple(jobs))


def over_one_cable(*seconds: float | None) -> SharedLoad:
    """Job 1 sends 6 bytes and job 2 sends 2 bytes over the same uplink of 1 byte/s."""
    fabric = two_leaves(uplinks=1)
    jobs = (
        job_between(fabric, "1", [("a0", "b0", 6.0)]),
        job_between(fabric, "2", [("a1", "b1", 2.0)]),
    )
    return timed(shared_load(fabric, jobs), *seconds)


def test_an_iteration_waits_for_the_capacity_that_others_leave() -> None:
    """Job 1 uses 0.3 and job 2 uses 0.2 of the cable: 6 bytes at 0.8 byte/s and 2 bytes at 0.7 byte/s."""
    found = interference(over_one_cable(20.0, 10.0))
    assert found.alone_seconds.tolist() == [6.0, 2.0]
    assert found.together_seconds == pytest.approx([7.5, 2 / 0.7])
    assert found.slowdowns == pytest.approx([1 + 1.5 / 20, 1 + (2 / 0.7 - 2) / 10])
    assert found.share == pytest.approx([0.6, 0.4])
    shared = over_one_cable(20.0, 10.0)
    names = [link_text(shared.fabric, row) for row in found.worst_link.tolist()]
    assert names == ["A:10", "A:10"]
    assert found.utilisation[found.worst_link[0]] == pytest.approx(0.5)


def test_a_long_run_beside_short_iterations_is_not_a_slowdown_of_many_times() -> None:
    """A profile of a whole hour: as one iteration it would be 1800 times the 2 bytes of job 2."""
    found = interference(over_one_cable(3600.0, 2000.0))
    assert found.slowdowns.max() < 1.000_01


def test_an_overloaded_link_delays_its_jobs_by_its_load() -> None:
    """Job 1 wants 0.75 and job 2 wants 0.5 byte/s of 1: both iterations take 1.25 times as long there."""
    found = interference(over_one_cable(8.0, 4.0))
    assert found.together_seconds == pytest.approx([10.0, 5.0])
    assert found.slowdowns == pytest.approx([1 + 4 / 8, 1 + 3 / 4])


@pytest.mark.parametrize("seconds", [(20.0, None), (None, 10.0), (None, None), (5.0, 10.0)])
def test_without_the_times_of_all_jobs_on_a_link_there_is_a_share_and_no_slowdown(
    seconds: tuple[float | None, float | None],
) -> None:
    """The last: 6 bytes cannot cross 1 byte/s in 5 seconds, so this is no time of an iteration."""
    found = interference(over_one_cable(*seconds))
    assert np.isnan(found.slowdowns).all()
    assert np.isnan(found.together_seconds).all()
    assert found.share == pytest.approx([0.75, 0.25])
    assert np.isnan(found.utilisation[found.worst_link]).all()


def test_a_job_without_common_links_is_not_slowed_whatever_others_do() -> None:
    fabric = two_leaves()
    jobs = (job_between(fabric, "1", [("a0", "a1", 6.0)]), job_between(fabric, "2", [("b0", "b1", 2.0)]))
    found = interference(timed(shared_load(fabric, jobs), 10.0, None))
    assert found.slowdowns[0] == 1.0
    assert math.isnan(found.slowdowns[1])
    assert found.share.tolist() == [1.0, 1.0]


def test_a_job_that_loads_nothing() -> None:
    fabric = two_leaves()
    found = interference(timed(shared_load(fabric, (job_between(fabric, "1", [("a0", "a0", 1.0)]),)), 1.0))
    assert (found.worst_link.tolist(), found.share.tolist()) == ([-1], [0.0])
    assert (found.together_seconds.tolist(), found.slowdowns.tolist()) == ([0.0], [1.0])
    assert interference(SharedLoad.of(fabric, ())).slowdowns.tolist() == []


@settings(deadline=None)
@given(running_jobs(), st.lists(st.one_of(st.none(), st.floats(0.5, 50.0)), min_size=3, max_size=3))
def test_slowdowns_of_a_slow_loop(case: Jobs, times: list[float | None]) -> None:
    fabric, jobs = case
    shared = timed(shared_load(fabric, jobs), *times[: len(jobs)])
    found, capacity = interference(shared), fabric.links.capacity
    loads = [one.link_bytes for one in shared.jobs]
    alone = [float((load / capacity).max(initial=0.0)) for load in loads]
    known = [
        time if time is not None and time >= one else None
        for time, one in zip(times[: len(jobs)], alone, strict=True)
    ]
    for job, load in enumerate(loads):
        slowest = 0.0
        for row in np.flatnonzero(load).tolist():
            users = [other for other in range(len(jobs)) if loads[other][row] > 0]
            rates = [np.nan if known[other] is None else loads[other][row] / known[other] for other in users]
            total, own = sum(rates), known[job]
            if np.isnan(total) or own is None:
                slowest = np.nan
                break
            others = total - load[row] / own
            fits = total <= capacity[row]
            slowest = max(
                slowest, load[row] / (capacity[row] - others) if fits else own * total / capacity[row]
            )
        own = known[job]
        expected = np.nan if own is None else 1 + (slowest - alone[job]) / own
        assert found.slowdowns[job] == pytest.approx(expected, nan_ok=True)
        assert math.isnan(expected) or found.slowdowns[job] >= 1 - 1e-9
        assert 0 <= found.share[job] <= 1 + 1e-9
