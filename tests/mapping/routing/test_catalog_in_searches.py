"""Every routing can be searched on: the result is not worse than in order on its own loads."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import mapping
from mapping.distances.cost_model import CostModel
from mapping.placement.search.options import SearchOptions
from mapping.placement.strategies.baselines import in_order
from mapping.routing.catalog import ROUTINGS
from tests.support.search_problems import ring


def text_of(name: str, folder: Path) -> str:
    """The routing on the ring; a table of paths goes around one way only."""
    if name != "path-table":
        return name
    rows = ["source,target,probability,path"]
    for i, j in itertools.permutations(range(8), 2):
        way = [f"n{(i + step) % 8:02}" for step in range((j - i) % 8 + 1)]
        rows.append(f"n{i:02},n{j:02},1,{'>'.join(way)}")
    path = folder / "paths.csv"
    path.write_text("\n".join(rows))
    return f"path-table:file={path}"


@pytest.mark.parametrize("name", [entry.name for entry in ROUTINGS if entry.name != "tables"])
def test_a_search_ends_no_worse_than_in_order(name: str, tmp_path: Path) -> None:
    fabric, profile, allocation = ring(8, 8)
    routing = text_of(name, tmp_path)
    start = in_order(profile.ranks, allocation)
    found = mapping.place(fabric, profile, allocation, SearchOptions(steps=3000), CostModel(routing=routing))
    assert found.routing == routing
    before, after = (
        mapping.evaluate(fabric, profile, one, costs=CostModel(routing=routing)) for one in (start, found)
    )
    assert after.routing == routing
    assert after.congestion_seconds <= before.congestion_seconds
