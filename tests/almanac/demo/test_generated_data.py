"""Generated data of the demonstration: jobs, port counters, the optical cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from almanac.demo import generated_data
from almanac.demo.generated_data import BUSY, ERRORS, STARTED, SWEEP, SWEEPS
from almanac.demo.history import MOVED_AT, PORT
from mapping.checks.finding import Subject
from mapping.checks.link_errors import find
from registry.counters.counters import rates_of
from registry.model import Job, growth, total
from tests.support.infiniband_data import infiniband

MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)
FABRIC = infiniband("ndr-dgx-minhop")


def test_the_last_running_job_started_before_the_counters() -> None:
    early, late = (datetime(2020, 1, 1, hour, tzinfo=UTC) for hour in (8, 9))
    jobs = (
        Job(id="1", name="a", started_at=early, ended_at=late),
        Job(id="2", name="b", started_at=late),
    )
    first, second = generated_data.recent_jobs(jobs, MOMENT)
    assert second.started_at == MOMENT - STARTED
    assert (first.started_at, first.ended_at) == (MOMENT - STARTED - timedelta(hours=1), MOMENT - STARTED)
    assert (first.submitted_at, second.ended_at) == (None, None)
    assert (first.name, first.source) == ("demo-a", generated_data.SOURCE)


def test_counters_of_the_last_hour_grow_with_the_predicted_traffic() -> None:
    links = FABRIC.links
    load = np.where(FABRIC.network_link, links.capacity, 0.0)
    sweeps = generated_data.counters(FABRIC, load, MOMENT)
    assert [sweep.at for sweep in sweeps] == [MOMENT - back * SWEEP for back in range(SWEEPS - 1, -1, -1)]
    assert sweeps[-1].at - sweeps[0].at == timedelta(hours=1)
    rates = rates_of(FABRIC, sweeps)
    assert rates is not None
    assert np.nanmax(rates.share) <= 0.97 + 1e-9
    assert abs(np.median(rates.share[FABRIC.network_link]) - BUSY) < 0.05
    assert np.nanmedian(rates.share[~FABRIC.network_link]) < 0.05


def test_only_the_port_of_the_moved_cable_counts_errors() -> None:
    load = np.ones(len(FABRIC.links))
    grown = total(list(growth(generated_data.counters(FABRIC, load, MOMENT))))
    symbol, received = (SWEEPS - 1) * ERRORS[0], (SWEEPS - 1) * ERRORS[1]
    (finding,) = find(Subject(fabric=FABRIC, counters=grown))
    assert str(finding.severity) == "warning"
    for words in (f"{MOVED_AT}:{PORT} ", f"{symbol} symbol errors", f"{received} receive errors"):
        assert words in finding.text


def test_counters_are_the_same_relative_to_another_moment() -> None:
    load = np.ones(len(FABRIC.links))
    later = MOMENT + timedelta(days=100)
    both = (generated_data.counters(FABRIC, load, moment) for moment in (MOMENT, later))
    for one, other in zip(*both, strict=True):
        assert other.at - one.at == later - MOMENT
        assert np.array_equal(one.values, other.values)


def test_the_optical_cluster_has_a_torus_of_circuits_and_two_jobs() -> None:
    fabric, tables = generated_data.optical_cluster()
    assert (len(fabric.hosts), len(fabric.switches), len(tables.switch_guid)) == (16, 4, 4)
    switch = generated_data.optical_switch("c", fabric)
    assert (len(switch.circuits), switch.max_edges, switch.max_degree) == (32, 32, 4)
    first, second = generated_data.optical_jobs(fabric, MOMENT, ("1", "2"))
    assert (len(first.hosts), first.slots, first.ranks) == (8, (8,) * 8, 64)
    assert not set(first.hosts) & set(second.hosts)
