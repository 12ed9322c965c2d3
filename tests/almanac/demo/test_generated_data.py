"""Generated data of the demonstration: an earlier scan, port counters, the optical cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from almanac.demo import generated_data
from almanac.demo.generated_data import BUSY, COUNTED, HOST_WITHOUT_RAIL, SWEEP
from registry.counters.counters import rates_of
from tests.support.infiniband_data import infiniband

SCANNED = datetime(2025, 8, 6, tzinfo=UTC)
FABRIC = replace(infiniband("ndr-dgx-minhop"), observed_at=SCANNED)


def test_the_earlier_scan_lacks_three_cables() -> None:
    before = generated_data.earlier(FABRIC)
    assert before.cable_count == FABRIC.cable_count - 3
    host = FABRIC.names.index(HOST_WITHOUT_RAIL)
    assert (before.links.source == host).sum() == (FABRIC.links.source == host).sum() - 1


def test_counters_grow_with_the_predicted_traffic() -> None:
    links = FABRIC.links
    load = np.where(FABRIC.network_link, links.capacity, 0.0)
    first, second = generated_data.counters(FABRIC, load)
    assert first.at == SCANNED + COUNTED
    assert second.at - first.at == SWEEP == timedelta(minutes=15)
    rates = rates_of(FABRIC, (first, second))
    assert rates is not None
    assert np.nanmax(rates.share) <= 0.97 + 1e-9
    assert abs(np.median(rates.share[FABRIC.network_link]) - BUSY) < 0.05
    assert np.nanmedian(rates.share[~FABRIC.network_link]) < 0.05


def test_the_optical_cluster_has_a_torus_of_circuits_and_two_jobs() -> None:
    fabric, tables = generated_data.optical_cluster()
    assert (len(fabric.hosts), len(fabric.switches), len(tables.switch_guid)) == (16, 4, 4)
    switch = generated_data.optical_switch("c", fabric)
    assert (len(switch.circuits), switch.max_edges, switch.max_degree) == (32, 32, 4)
    first, second = generated_data.optical_jobs(fabric, SCANNED, ("1", "2"))
    assert (len(first.hosts), first.slots, first.ranks) == (8, (8,) * 8, 64)
    assert not set(first.hosts) & set(second.hosts)
