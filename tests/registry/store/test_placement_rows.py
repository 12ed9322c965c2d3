"""Placements as columns and page by page, the same as one by one; loads of links as bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from registry.database import codec
from registry.errors import DatabaseError, InvalidValue
from registry.model.placement import LoadedLinks, PlacementSeries
from registry.registry import Registry
from registry.store.placement_rows import StoredPlacementInfo, pack_loads, unpack_loads
from tests.support.busy_cluster import PROPOSED, at, fill, job, place, record, statements_of


@pytest.fixture
def placed(registry: Registry) -> Registry:
    """Two jobs with placements of two profiles, and one of neither."""
    fill(registry, job("7", 2), job("8", 3))
    fill(registry, cluster="two")
    place(registry, "7")
    place(registry, "7", role=PROPOSED, seconds=2.0, strategy="greedy", seed=3)
    place(registry, "8", ranks=(0, 1), profile="pair", evaluated=False)
    place(registry, None, cluster="two")
    registry.placements.save(replace(record(registry, None), profile=None, routing=None))
    return registry


def test_the_series_has_the_values_of_the_history_the_oldest_first(placed: Registry) -> None:
    series = placed.placements.series()
    history = placed.placements.history()[::-1]
    assert sorted(series.id) == sorted(info.id for info in history)
    rows = {identity: row for row, identity in enumerate(series.id)}
    assert (np.diff(series.recorded_at) >= np.timedelta64(0)).all()
    for info in history:
        assert same_row(series, rows[info.id], info)


def same_row(series: PlacementSeries, row: int, info: StoredPlacementInfo) -> bool:
    same_names = ("cluster", "application", "job", "role", "strategy", "objective", "routing", "snapshot")
    for name in (*same_names, "code_version", "ranks", "complete"):
        assert getattr(series, name)[row] == (getattr(info, name) or type(getattr(series, name)[row])()), name
    assert (series.profile[row], series.profile_name[row]) == (info.profile_id or "", info.profile or "")
    moment = series.recorded_at[row].item().replace(tzinfo=info.recorded_at.tzinfo)
    assert moment == info.recorded_at
    for name in ("congestion_seconds", "network_congestion_seconds", "hop_bytes"):
        assert same_number(getattr(series, name)[row], getattr(info, name))
        assert same_number(getattr(series, f"bound_{name}")[row], info.bounds.get(name))
    assert same_number(series.average_dilation[row], info.average_dilation)
    in_order = None if info.in_order is None else info.in_order.hop_bytes
    assert same_number(series.in_order_hop_bytes[row], in_order)
    return True


def same_number(value: float, expected: float | None) -> bool:
    return bool(np.isnan(value)) if expected is None else value == expected


def test_the_series_has_hosts_order_tables_and_role(placed: Registry) -> None:
    first = placed.placements.series("toy").id[0]
    again = place(placed, "7", ranks=(1, 0, 0))
    series = placed.placements.series("toy")
    old, new = series.id.index(first), series.id.index(again)
    assert series.allocation[new] == series.allocation[old] != ""
    assert series.order[new] != series.order[old]
    assert series.tables[old] == placed.fabrics.read("toy").routing
    assert set(series.role) == {"present", "proposed"}


def test_the_series_is_filtered(placed: Registry) -> None:
    def found(*asked: object, **shown: object) -> int:
        return len(placed.placements.series(*asked, **shown))  # type: ignore[arg-type]

    assert (found(), found("toy"), found("two"), found("none")) == (5, 4, 1, 0)
    assert (found(application="cg"), found("toy", "cg"), found("toy", "ft")) == (3, 2, 1)
    middle = placed.placements.history("toy")[1].recorded_at
    assert (found("toy", since=middle), found(since=at(0)), found(since=at(1e8))) == (2, 5, 0)


@pytest.mark.parametrize("asked", [{}, {"cluster": "toy"}, {"job": "7"}, {"application": "cg"}])
def test_the_history_is_read_page_by_page(placed: Registry, asked: dict[str, Any]) -> None:
    whole = placed.placements.history(**asked)
    assert placed.placements.history(**asked, limit=2) == whole[:2]
    assert placed.placements.history(**asked, before=whole[0]) == whole[1:]
    assert statements_of(placed, lambda counted: counted.placements.history(**asked, limit=2)) == 1
    assert statements_of(placed, lambda counted: counted.placements.series(asked.get("cluster"))) == 1


def test_pages_of_placements_of_one_moment_are_ordered_by_id(placed: Registry) -> None:
    moment = placed.placements.history()[0].recorded_at
    placed.database.write(lambda tx: tx.run("MATCH (p:Placement) SET p.recorded_at = $at", at=moment))
    whole = placed.placements.history()
    pages: list[StoredPlacementInfo] = []
    last = None
    while page := placed.placements.history(limit=2, before=last):
        pages += page
        last = page[-1]
    assert tuple(pages) == whole
    assert len(whole) == 5
    assert [info.id for info in whole] == sorted(info.id for info in whole)


def test_many_placements_are_saved_together_or_not_at_all(placed: Registry) -> None:
    before = placed.database.query("MATCH (n) RETURN count(n)")[1]
    new = [record(placed, "7", seconds=5.0, seed=1), record(placed, "8", seconds=6.0, seed=2)]
    with pytest.raises(InvalidValue, match="role"):
        placed.placements.save_many([*new, replace(new[0], role="other")])
    assert placed.database.query("MATCH (n) RETURN count(n)")[1] == before
    ids = placed.placements.save_many([*new, new[0]])
    assert ids == (*ids[:2], ids[0])
    assert [placed.placements.read(identity).job for identity in ids[:2]] == ["7", "8"]
    assert len(placed.placements.history()) == 7
    assert placed.placements.save_many([]) == ()


def test_placements_of_the_past_are_saved_with_their_times(placed: Registry) -> None:
    times = [at(-2), at(-1)]
    old = [record(placed, "7", seconds=5.0, seed=1), record(placed, "8", seconds=6.0, seed=2)]
    ids = placed.placements.save_many(old, times)
    assert [placed.placements.read(identity).recorded_at for identity in ids] == times
    assert [info.id for info in placed.placements.history()][-2:] == [*ids[::-1]]
    with pytest.raises(ValueError, match="shorter"):
        placed.placements.save_many(old, times[:1])


def test_columns_of_another_length_are_refused() -> None:
    empty = dict.fromkeys(PlacementSeries.__slots__, ())
    with pytest.raises(InvalidValue, match="role"):
        PlacementSeries(**empty | {"role": ("present",)})  # type: ignore[arg-type]


LOADS = arrays(np.float64, st.integers(0, 60), elements=st.sampled_from([0.0, 0.0, 0.0, 1.0, 2.5e9]))


@given(LOADS)
def test_packed_loads_are_unpacked_and_those_of_earlier_versions_too(link_bytes: np.ndarray) -> None:
    found = unpack_loads(pack_loads(link_bytes))
    assert np.array_equal(found.dense(), link_bytes)
    assert found.link.tolist() == [row for row, load in enumerate(link_bytes) if load]
    assert np.array_equal(unpack_loads(codec.pack({"link_bytes": link_bytes})).dense(), link_bytes)


def test_few_loaded_links_of_many_take_few_bytes() -> None:
    rng = np.random.default_rng(0)
    link_bytes = np.zeros(60_000)
    link_bytes[rng.choice(60_000, 600, replace=False)] = rng.random(600)
    assert len(pack_loads(link_bytes)) < 600 * 12 + 300


@pytest.mark.parametrize(
    "columns",
    [
        {"other": np.zeros(1)},
        {"links": np.zeros(0, np.int64), "link": np.zeros(1, np.int32), "bytes": np.ones(1)},
        {"links": np.array([2], np.int64), "link": np.array([2], np.int32), "bytes": np.ones(1)},
        {"links": np.array([2], np.int64), "link": np.array([1, 0], np.int32), "bytes": np.ones(2)},
        {"links": np.array([2], np.int64), "link": np.array([1], np.int32), "bytes": np.ones(2)},
    ],
)
def test_damaged_loads_are_an_error(columns: dict[str, np.ndarray]) -> None:
    with pytest.raises(DatabaseError, match="damaged"):
        unpack_loads(codec.pack(columns))


def test_rows_outside_the_fabric_are_refused() -> None:
    with pytest.raises(InvalidValue, match="outside"):
        LoadedLinks(link=np.array([-1]), bytes=np.array([1.0]), links=2)
    with pytest.raises(InvalidValue, match="ascend"):
        LoadedLinks(link=np.array([1, 1]), bytes=np.array([1.0, 1.0]), links=2)
