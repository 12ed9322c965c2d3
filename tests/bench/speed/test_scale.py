"""Sizes of what the cost curves are measured on, and their table."""

from __future__ import annotations

import numpy as np
import pytest

from bench.speed.scale import LINES, cube, equivalent, fat_tree, markdown, ohtma, panels


@pytest.mark.parametrize("ranks", [64, 512, 4096, 20_000, 100_000])
def test_a_fat_tree_has_a_host_for_five_ranks_at_least(ranks: int) -> None:
    hosts = len(fat_tree(ranks).hosts)
    assert ranks <= 5 * hosts < 2 * ranks + 200


def test_the_largest_fat_tree_is_the_issues() -> None:
    assert len(fat_tree(100_000).hosts) == 20_000


@pytest.mark.parametrize("ranks", [64, 512, 4096])
def test_a_cube_has_all_its_ranks_and_six_neighbours_inside(ranks: int) -> None:
    profile = cube(ranks)
    assert profile.ranks == ranks
    assert np.bincount(profile.sender).max() == 6


def test_limits_are_set_at_sizes_that_are_measured() -> None:
    for name, line in LINES.items():
        assert set(line.limits) <= set(line.sizes), name
        assert list(line.sizes) == sorted(line.sizes), name


def test_points_become_a_table_and_curves() -> None:
    found = {"OHTMA": ohtma(64), "equivalent distances": equivalent(16)}
    curves = {
        name: {"unit": "ranks", "points": {64: {**one, "peak_memory_gb": 0.2}}, "limits_seconds": {64: 0.5}}
        for name, one in found.items()
    }
    record = {"date": "d", "machine": {"processor": "p", "cores": 2}, "curves": curves}
    assert "| OHTMA | 64 ranks |" in markdown(record)
    seconds, memory = panels(curves)
    assert [curve.label for curve in seconds.curves] == list(found)
    assert memory.curves[0].y == (0.2,)
