"""Reports of bounds, of chains beside the default portfolio, and of two threads beside one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.quality import bounds, cores, members
from bench.quality.peers.measure import METRICS
from ingest.generate.tori import torus
from mapping.placement.catalog import Chain
from mapping.routing import shortest_paths
from registry.model import Allocation, Profile

ABOUT = {"date": "now", "machine": {"processor": "p", "cores": 2}, "seed": 0}


def test_optima_are_those_of_a_ring_on_a_ring() -> None:
    """Eight neighbours each way on eight neighbours: 16 bytes times one hop, one byte on each cable."""
    fabric, rank = torus((8,)), np.arange(8)
    routes = shortest_paths.build(fabric, fabric.hosts)
    around = Profile.from_edges(np.r_[rank, (rank + 1) % 8], np.r_[(rank + 1) % 8, rank], np.ones(16))
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    best = bounds.optima(routes, around, allocation)
    byte = 1.0 / float(fabric.links.capacity[0])
    assert best == {"hop_bytes": 16.0, "congestion_seconds": byte, "network_congestion_seconds": byte}
    found = bounds.compared(routes, around, allocation, best)
    assert found["ratios"]["hop_bytes"]["gilmore-lawler"] == pytest.approx(1.0)
    rows = bounds.summary({"ring": found})
    assert rows["hop_bytes"]["geometric_mean"] == pytest.approx(1.0)
    assert sum(rows["hop_bytes"]["best_of"].values()) == rows["hop_bytes"]["instances"] == 1
    tight = {"cases": 1, "at_optimum": 1, "least": 1.0, "geometric_mean": 1.0}
    small = {"hop_bytes": {"gilmore-lawler": tight}}
    page = bounds.markdown({"date": "now", "instances": {"ring": found}, "summary": rows, "small": small})
    assert "| ring | 1.000 " in page
    assert "| hop_bytes | gilmore-lawler | 1 | 1 | 1.000 |" in page


def test_slots_of_one_host_are_alike() -> None:
    """Two hosts of four slots: the four edges within fours cost nothing, one edge between them 2 bytes."""
    fabric = torus((2,), slots=4)
    routes = shortest_paths.build(fabric, fabric.hosts)
    profile = Profile.from_edges([0, 2, 4, 6, 0], [1, 3, 5, 7, 1], [9.0] * 5, ranks=8)
    allocation = Allocation.of(fabric, fabric.hosts.tolist(), 4)
    assert bounds.optima(routes, profile, allocation)["hop_bytes"] == 0.0


def test_the_best_known_value_is_of_any_tool() -> None:
    ours = dict.fromkeys(METRICS, 3.0)
    peers = [{**ours, "hop_bytes": 2.0}, {"peer": "failed"}, {**ours, "congestion_seconds": None}]
    assert bounds.best_known({"ours": [ours], "peers": peers}) == {**ours, "hop_bytes": 2.0}


def test_drawn_traffic_is_the_same_for_a_seed() -> None:
    first, again, other = bounds.drawn(1), bounds.drawn(1), bounds.drawn(2)
    assert first.ranks == 8
    assert np.array_equal(first.bytes, again.bytes)
    assert not np.array_equal(first.bytes, other.bytes)


def test_two_threads_are_set_beside_one() -> None:
    found = {
        "a": {"hop-bytes": {"two": 9.0, "one": 10.0}, "congestion": {"two": 2.0, "one": 1.0}},
        "b": {"hop-bytes": {"two": 10.0, "one": 9.0}, "congestion": {"two": 0.0, "one": 0.0}},
    }
    means = {objective: cores.mean(found, objective) for objective in ("hop-bytes", "congestion")}
    assert means == pytest.approx({"hop-bytes": 1.0, "congestion": math.sqrt(2.0)})
    record = {**ABOUT, "geometric_mean_of_two_over_one": means, "instances": found}
    page = cores.markdown({**record, "seconds": {"two": 10.0, "one": 18.0}})
    assert "| a | 0.900 | 2.000 |" in page
    assert "| geometric mean | 1.000 | 1.414 |" in page


def test_every_chain_can_be_parsed() -> None:
    for text in (text for chains in members.CHAINS.values() for text in chains):
        assert str(Chain.parse(text)) == text


def test_a_chain_is_set_beside_the_default() -> None:
    slow, fast, *others = members.CHAINS["hop-bytes"]
    found = {
        name: {"hop-bytes": {members.DEFAULT: 10.0, slow: 20.0, fast: value, **dict.fromkeys(others, 40.0)}}
        for name, value in (("a", 5.0), ("b", 10.0))
    }
    summary = members.summary(found, "hop-bytes")
    rows = {row["chain"]: row for row in summary}
    means = {name: row["geometric_mean_over_default"] for name, row in rows.items()}
    assert (means[members.DEFAULT], means[slow], means[fast]) == (1.0, 2.0, pytest.approx(math.sqrt(0.5)))
    assert rows[members.DEFAULT]["best_on"] == 1
    assert (rows[fast]["best_on"], rows[fast]["least"], rows[fast]["most"]) == (2, ["a", 0.5], ["b", 1.0])
    page = members.markdown({**ABOUT, "seconds": 3.0, "summary": {"hop-bytes": summary}})
    assert f"| {fast} | 0.707 | 2 of 2 | 0.500 (a) | 1.000 (b) |" in page
