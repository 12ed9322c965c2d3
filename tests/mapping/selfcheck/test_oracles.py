"""The slow computations themselves, on networks that are computed by hand."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from ingest.generate.tori import torus
from mapping.selfcheck import oracles
from registry.model import Allocation, Fabric, Placement, Profile


def diamond() -> Fabric:
    """Hosts a and d, and between them switches b and c: two equal paths; the cable b - d is three cables."""
    tail, head = [0, 0, 1, 1, 1, 2], [1, 2, 3, 3, 3, 3]
    return Fabric.from_arcs(
        list("abcd"), tail + head, head + tail, 2.0, slots=[1, 0, 0, 1], forwards=[False, True, True, False]
    )


def part_by_arc(fabric: Fabric, route: oracles.Route | None) -> dict[str, float]:
    assert route is not None
    links, parts = fabric.links, defaultdict[str, float](float)
    for row, part in route:
        parts[fabric.names[links.source[row]] + fabric.names[links.target[row]]] += part
    return dict(parts)


def test_equal_paths_carry_equal_parts() -> None:
    fabric = diamond()
    found = part_by_arc(fabric, oracles.route(fabric, 0, 3, "shortest-paths"))
    assert found == pytest.approx({"ab": 0.5, "ac": 0.5, "bd": 0.5, "cd": 0.5})


def test_costs_are_sums_over_the_pairs() -> None:
    """12 bytes from a to d: 6 on each path; three cables b - d have 6 bytes/s together."""
    fabric = diamond()
    allocation = Allocation.of(fabric, [0, 3], 1)
    placement = Placement(host_of_rank=np.array([0, 3], np.int32), allocation=allocation, strategy="given")
    cost = oracles.cost(fabric, Profile.from_edges([0], [1], [12.0], ranks=2), placement)
    assert cost.hop_bytes == pytest.approx(24.0)
    assert cost.congestion == pytest.approx(3.0)
    assert cost.network_congestion == 0.0
    assert cost.max_dilation == pytest.approx(2.0)


def test_resistances_in_series_and_in_parallel() -> None:
    """By b 1 + 1/3 ohm, by c 2 ohm; together 4/3 * 2 / (4/3 + 2) = 0.8."""
    fabric = diamond()
    rows = list(range(len(fabric.links)))
    assert oracles.resistance(fabric, rows, 0, 3, own_cables=True) == pytest.approx(0.8)
    assert oracles.resistance(fabric, rows, 0, 3, own_cables=False) == 0.0


def test_no_path_and_too_many_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    apart = Fabric.from_arcs(list("ab"), [], [], [], slots=1)
    assert oracles.route(apart, 0, 1, "shortest-paths") is None
    monkeypatch.setattr(oracles, "MOST_PATHS", 5)
    grid = torus([5, 5])
    assert len(part_by_arc(grid, oracles.route(grid, 0, 6, "shortest-paths"))) == 4
    with pytest.raises(oracles.TooManyPaths):
        oracles.route(grid, 0, 12, "shortest-paths")  # two steps in each direction: 6 paths


def test_placements_are_all_within_the_slots() -> None:
    assert list(oracles.every_placement([7, 9], [1, 2], 2)) == [(7, 9), (9, 7), (9, 9)]
