"""How tight bounds are: exact optima of small cases, and reports."""

from __future__ import annotations

import numpy as np
import pytest

from bench.quality.bounds import best_known, compared, drawn, markdown, optima, summary
from bench.quality.peers.measure import METRICS
from ingest.generate.tori import torus
from mapping.routing import shortest_paths
from registry.model import Allocation, Profile


def test_optima_are_those_of_a_ring_on_a_ring() -> None:
    """Eight neighbours each way on eight neighbours: 16 bytes times one hop, one byte on each cable."""
    fabric, rank = torus((8,)), np.arange(8)
    routes = shortest_paths.build(fabric, fabric.hosts)
    around = Profile.from_edges(np.r_[rank, (rank + 1) % 8], np.r_[(rank + 1) % 8, rank], np.ones(16))
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    best = optima(routes, around, allocation)
    capacity = float(fabric.links.capacity[0])
    assert best == {
        "hop_bytes": 16.0,
        "congestion_seconds": 1.0 / capacity,
        "network_congestion_seconds": 1.0 / capacity,
    }
    found = compared(routes, around, allocation, best)
    assert found["ratios"]["hop_bytes"]["gilmore-lawler"] == pytest.approx(1.0)
    rows = summary({"ring": found})
    assert rows["hop_bytes"]["geometric_mean"] == pytest.approx(1.0)
    assert sum(rows["hop_bytes"]["best_of"].values()) == rows["hop_bytes"]["instances"] == 1
    tight = {"cases": 1, "at_optimum": 1, "least": 1.0, "geometric_mean": 1.0}
    page = markdown(
        {
            "date": "now",
            "instances": {"ring": found},
            "summary": rows,
            "small": {"hop_bytes": {"gilmore-lawler": tight}},
        }
    )
    assert "| ring | 1.000 " in page
    assert "| hop_bytes | gilmore-lawler | 1 | 1 | 1.000 |" in page


def test_slots_of_one_host_are_alike() -> None:
    """Two hosts of four slots: the four edges within fours cost nothing, one edge between them 2 bytes."""
    fabric = torus((2,), slots=4)
    allocation = Allocation.of(fabric, fabric.hosts.tolist(), 4)
    profile = Profile.from_edges([0, 2, 4, 6, 0], [1, 3, 5, 7, 1], [9.0] * 5, ranks=8)
    assert optima(shortest_paths.build(fabric, fabric.hosts), profile, allocation)["hop_bytes"] == 0.0


def test_the_best_known_value_is_of_any_tool() -> None:
    ours = dict.fromkeys(METRICS, 3.0)
    peers = [{**ours, "hop_bytes": 2.0}, {"peer": "failed"}, {**ours, "congestion_seconds": None}]
    assert best_known({"ours": [ours], "peers": peers}) == {**ours, "hop_bytes": 2.0}


def test_drawn_traffic_is_the_same_for_a_seed() -> None:
    first, again, other = drawn(1), drawn(1), drawn(2)
    assert first.ranks == 8
    assert np.array_equal(first.bytes, again.bytes)
    assert not np.array_equal(first.bytes, other.bytes)
