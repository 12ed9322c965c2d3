from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from dashboard.tables.placements import (
    communication,
    cost_table,
    job_costs,
    placement_text,
    placements_table,
    ranks_per_host,
    relative_change,
)
from registry.model import Allocation, Bound, Evaluation, Metrics, Placement, Profile
from registry.records.placements.records import PRESENT, PROPOSED, StoredPlacement, StoredPlacementInfo

COSTS = ("congestion_seconds", "network_congestion_seconds", "hop_bytes", "average_dilation")


def metrics(*costs: float) -> Metrics:
    return Metrics(**dict(zip(COSTS, costs, strict=True)))


def info(name: str = "p1") -> StoredPlacementInfo:
    """A placement of job 4711, at twice its bound and half the cost of ranks in order."""
    plain: dict[str, Any] = {field.name: "" for field in fields(StoredPlacementInfo)}
    plain |= {"id": name, "recorded_at": datetime(2026, 1, 1, tzinfo=UTC), "cluster": "c", "snapshot": "c/1"}
    plain |= {"application": "cg", "profile": "cg_16", "profile_id": "1", "job": "4711", "strategy": "greedy"}
    plain |= {"ranks": 16, "complete": True, "role": PROPOSED, "bounds": {"congestion_seconds": 1e-3}}
    plain |= dict(zip(COSTS, (2e-3, 1e-3, 5e6, 2.5), strict=True))
    plain |= {"in_order": metrics(4e-3, 3e-3, 9e6, 4.5), "random": None}
    return StoredPlacementInfo(**plain)


def test_a_change_is_shown_in_percent() -> None:
    assert relative_change(50.0, 100.0) == ("-50.0 % against in order", True)
    assert relative_change(101.0, 100.0) == ("+1.0 % against in order", False)
    assert relative_change(100.01, 100.0) == ("as in order", None)
    for before in (0.0, None):
        assert relative_change(1.0, before) == (None, None)


def test_a_placement_is_a_text_with_profile_job_cost_and_id_or_a_row() -> None:
    assert placement_text(info()) == "cg_16 · job 4711 · 2 ms · greedy · 2026-01-01 00:00:00 UTC · p1"
    table = placements_table([info(), replace(info("p2"), role=PRESENT, congestion_seconds=None)])
    assert table["what"].tolist() == ["proposed", "ran with"]
    assert table["worst link"].tolist() == ["2 ms", ""]


def test_communication_sums_all_bytes_whatever_the_bins() -> None:
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, 100, (2, 3000))
    profile = Profile.from_edges(source, target, rng.random(3000), ranks=100)
    for bins in (1, 7, 64, 512):
        matrix = communication(profile, bins)
        assert matrix.shape == (min(bins, 100),) * 2
        assert matrix.sum() == pytest.approx(profile.bytes.sum())
    profile = Profile.from_edges([0, 2], [1, 0], [5.0, 7.0], ranks=3)
    assert communication(profile).tolist() == [[0, 5, 0], [0, 0, 0], [7, 0, 0]]


def test_ranks_of_each_host_are_folded() -> None:
    table = ranks_per_host(["b", "a"], {"in order": ["b", "b", "a"], "placed": ["a", "b", "b"]})
    assert table.to_dict("records") == [
        {"host": "b", "ranks": 2, "in order": "0-1", "placed": "1-2"},
        {"host": "a", "ranks": 1, "in order": "2", "placed": "0"},
    ]


def stored(role: str, seconds: float, *, bound: float | None = None) -> StoredPlacement:
    """Return a placement of two ranks on two hosts with this time of the worst link."""
    costs = dict(zip(COSTS, (seconds, seconds / 2, 4e6, 2.0), strict=True))
    others = {"total_bytes": 2e6, "max_dilation": 3, "mean_congestion_seconds": seconds / 4}
    found: dict[str, Any] = {
        **costs,
        **others,
        "routing": "tables",
        "rails": "each",
        "link_bytes": np.zeros(0),
    }
    found["bounds"] = {} if bound is None else {"congestion_seconds": Bound(value=bound, proof="cut")}
    allocation = Allocation(hosts=np.array([0, 1]), slots=np.array([1, 1]))
    return StoredPlacement(
        id=f"p-{role}",
        cluster="c",
        content="c/1",
        placement=Placement(host_of_rank=np.array([0, 1]), allocation=allocation, strategy="greedy"),
        evaluation=Evaluation(**found),
        in_order=metrics(9.0, 8.0, 7.0, 6.0),
        random=metrics(12.0, 8.0, 7.0, 6.0),
        role=role,
        hosts=("a", "b"),
        recorded_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_a_job_stands_between_the_best_possible_and_a_random_placement() -> None:
    ran, found = stored(PRESENT, 8.0, bound=1.0), stored(PROPOSED, 6.0, bound=2.0)
    both = job_costs(found, ran)
    assert both == job_costs(ran, found)
    assert tuple(both) == (8.0, False, 6.0, 2.0, 12.0)
    assert both.change == pytest.approx(-0.25)
    assert both.points() == {"best possible": 2.0, "found": 6.0, "random": 12.0, "now": 8.0}


def test_ranks_in_order_are_assumed_if_it_is_not_known_how_a_job_runs() -> None:
    found = job_costs(stored(PROPOSED, 6.0), None)
    assert tuple(found) == (9.0, True, 6.0, None, 12.0)
    assert found.points() == {"found": 6.0, "random": 12.0, "in order": 9.0}
    alone = job_costs(stored(PRESENT, 8.0), None)
    assert (alone.now, alone.assumed, alone.better, alone.change) == (8.0, False, None, None)


def test_the_costs_of_a_placement_are_beside_those_of_another_one() -> None:
    table = cost_table(stored(PROPOSED, 6.0, bound=2.0), stored(PRESENT, 8.0), "how it runs")
    assert table.iloc[0].tolist() == ["Worst link", "6 s", "8 s", "12 s", "2 s", "cut"]
    in_order = cost_table(stored(PROPOSED, 6.0), None, "in order")
    assert in_order.iloc[0].tolist() == ["Worst link", "6 s", "9 s", "12 s", "", ""]
