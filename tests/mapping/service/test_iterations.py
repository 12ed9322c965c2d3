"""Times of iterations measured at the cables of hosts that only one job uses."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from mapping.service.iterations import utilisation, with_counters, with_measured_iterations
from mapping.service.live import Live, traffic
from mapping.traffic.device_names import find_link
from registry.model import CounterSweep, Profile
from registry.model.intake import Intake
from registry.model.rates import LinkRates
from registry.registry import Registry
from tests.support.running_jobs import FABRIC, T0, job

MINUTE = timedelta(minutes=1)


@pytest.fixture
def two_jobs(registry: Registry) -> Registry:
    """Job 1 sends 8 bytes from a0 to b0; job 2 sends 2 bytes from a1 to b1, as job 3 may on b1."""
    eight = Profile.from_edges([0], [1], [8.0], name="eight")
    two = Profile.from_edges([0], [1], [2.0], name="two")
    jobs = (job("1", ("a0", "b0")), job("2", ("a1", "b1")), job("3", ("b1",)))
    registry.save(
        Intake(cluster="c", fabric=FABRIC, observed_at=T0, jobs=jobs, profiles=(eight, two), source="test")
    )
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
    rates = LinkRates(
        start=T0 + start,
        end=T0 + 2 * MINUTE,
        bytes_per_second=rate,
        peak_bytes_per_second=rate,
        share=rate,
        at_least=lower,
        by=lower.astype(np.uint8),
        wait_ticks_per_second=none,
        ecn_marked_per_second=none,
        pauses_per_second=none,
    )
    found = with_measured_iterations(live, rates)
    assert all(
        (one.iteration_from == "measured") == (one.iteration_seconds is not None) for one in found.shared.jobs
    )
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


def test_what_does_not_count(two_jobs: Registry) -> None:
    live = traffic(two_jobs, "c")
    assert measured(live, a0_1=0.25, start=-MINUTE)["1"] is None  # counted before the job ran
    assert measured(live, a0_1=0.25, unsure="a0:1")["1"] is None  # a lower bound
    assert measured(live, a0_1=0.0)["1"] is None
    assert with_measured_iterations(live, None) is live


def test_a_stated_time_counts_more(two_jobs: Registry) -> None:
    two_jobs.jobs.attach("1", "eight", iteration_seconds=7.0)
    live = traffic(two_jobs, "c")
    assert {one.job: (one.iteration_seconds, one.iteration_from) for one in live.shared.jobs} == {
        "1": (7.0, "stated"),
        "2": (None, ""),
    }
    assert with_counters(two_jobs, live) is live  # there are no counters


def test_counters_of_the_registry(two_jobs: Registry) -> None:
    """Host a0 has no GUID here: the port of its switch counts what a0 sends."""
    sweeps = [
        CounterSweep(
            at=T0 + number * MINUTE,
            guid=np.array([0xA0], np.uint64),
            port=np.array([1]),
            names=("xmit_bytes", "rcv_bytes"),
            values=np.array([[0, 30 * number]]),
        )
        for number in range(2)
    ]
    two_jobs.save(Intake(cluster="c", counters=tuple(sweeps), source="test"))
    found = with_counters(two_jobs, traffic(two_jobs, "c"))
    assert {one.job: one.iteration_seconds for one in found.shared.jobs} == {
        "1": pytest.approx(8 / 0.5),
        "2": None,
    }


def test_the_utilisation_is_known_once_all_jobs_have_times_and_scales_each_by_its_own(
    two_jobs: Registry,
) -> None:
    """Job 1 sends its 8 bytes every 16 s, job 2 its 2 bytes every 8 s."""
    two_jobs.jobs.attach("1", "eight", iteration_seconds=16.0)
    assert utilisation(traffic(two_jobs, "c", T0 + MINUTE), None) is None
    two_jobs.jobs.attach("2", "two", iteration_seconds=8.0)
    live = traffic(two_jobs, "c", T0 + MINUTE)
    share = utilisation(live, None)
    assert share is not None
    capacity = live.fabric.links.capacity
    first, second = find_link(live.fabric, "a0:1"), find_link(live.fabric, "a1:1")
    assert share[first] == pytest.approx(0.5 / capacity[first])
    assert share[second] == pytest.approx(0.25 / capacity[second])
    assert live.shared.seconds[first] == pytest.approx(8.0 / capacity[first])
