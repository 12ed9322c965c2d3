"""How a routing and its options are written, and that every routing can be searched on."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import mapping
from ingest.generate.tori import mesh
from mapping.distances.cost_model import CostModel
from mapping.placement.search.options import SearchOptions
from mapping.placement.strategies.baselines import in_order
from mapping.routing.catalog import ROUTINGS, Routing, build_routes
from registry.errors import InvalidValue, UnknownName
from tests.support.search_problems import ring

NAMES = [entry.name for entry in ROUTINGS]


def test_routes_are_named_by_the_canonical_text() -> None:
    assert [str(Routing.parse(name)) for name in NAMES] == NAMES
    for routing in ("shortest-paths", Routing.parse("shortest-paths")):
        assert build_routes(routing, mesh((2,)), [0, 1]).name == "shortest-paths"
    assert build_routes("up-down:root=n0", mesh((2,)), [0, 1]).name == "up-down:root=n0"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("table", UnknownName, "tables"),
        ("tables", InvalidValue, "no forwarding tables"),
        ("shortest-paths:paths=3", UnknownName, "shortest-paths has none"),
        ("shortest-paths:paths", InvalidValue, "KEY=VALUE"),
        ("shortest-paths:rails=same-rail", UnknownName, "rails"),
        ("ugal:share=1.5", InvalidValue, "from 0 to 1"),
        ("valiant:share=nan", InvalidValue, r"valiant\.share"),
        ("ugal:minimal=shortest", UnknownName, "shortest-paths"),
        ("ugal:minimal=tables", InvalidValue, "forwarding tables"),
        ("ecmp:paths=0", InvalidValue, "below 1"),
        ("ecmp:seed=-1", InvalidValue, "seed"),
        ("least-loaded:order=heavy", UnknownName, "heaviest"),
        ("up-down:root=six", UnknownName, "switch 'six'"),
        ("dimension-order:order=xx", InvalidValue, "each of 'xy' once"),
        ("dimension-order:order=xyz", InvalidValue, "each of 'xy' once"),
        ("dimension-order:order=x", InvalidValue, "each of 'xy' once"),
        ("dimension-order:order=xz", InvalidValue, "each of 'xy' once"),
        ("path-table", InvalidValue, "is empty: give the path"),
    ],
)
def test_a_name_or_an_option_that_there_is_not_is_refused(
    text: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build_routes(text, mesh((2, 2)), [1, 2])


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


@pytest.mark.parametrize("name", [name for name in NAMES if name != "tables"])
def test_a_search_ends_no_worse_than_in_order(name: str, tmp_path: Path) -> None:
    fabric, profile, allocation = ring(8, 8)
    costs = CostModel(routing=text_of(name, tmp_path))
    start = in_order(profile.ranks, allocation)
    found = mapping.place(fabric, profile, allocation, SearchOptions(steps=500), costs)
    assert found.routing == costs.routing
    before, after = (mapping.evaluate(fabric, profile, one, costs=costs) for one in (start, found))
    assert after.routing == costs.routing
    assert after.congestion_seconds <= before.congestion_seconds
