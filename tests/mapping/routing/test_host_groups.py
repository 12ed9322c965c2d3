"""Distances between groups of hosts that are interchangeable; `check_loads` compares them with paths."""

from __future__ import annotations

from mapping.routing import shortest_paths
from tests.support.small_fabrics import cabled


def test_hosts_on_one_switch_are_one_group() -> None:
    fabric = cabled("0-6 1-6 2-6 3-7 4-7 5-7 6-7", 6)
    group, between = shortest_paths.build(fabric, fabric.hosts[::-1]).grouped_hops()
    assert group.tolist() == [0, 0, 0, 1, 1, 1]
    assert between.tolist() == [[2, 3], [3, 2]]
