from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from dashboard.tables.placements import (
    communication,
    comparison,
    placement_text,
    ranks_per_host,
    relative_change,
)
from dashboard.widgets.messages import plain
from registry import units
from registry.model import Metrics, Profile
from registry.records.placements.records import StoredPlacementInfo


def info(name: str = "p1", *, application: str | None = "cg", cluster: str = "c") -> StoredPlacementInfo:
    return StoredPlacementInfo(
        id=name,
        recorded_at=datetime(2026, 1, 1, tzinfo=UTC),
        cluster=cluster,
        snapshot="c/1",
        application=application,
        profile="cg_16",
        profile_id="1",
        job="4711",
        ranks=16,
        strategy="greedy",
        objective="congestion",
        routing="tables",
        seed=0,
        seconds=1.0,
        steps=10,
        complete=True,
        code_version="0.1.0",
        congestion_seconds=2e-3,
        network_congestion_seconds=1e-3,
        hop_bytes=5e6,
        average_dilation=2.5,
        bounds={"congestion_seconds": 1e-3},
        in_order=Metrics(
            congestion_seconds=4e-3, network_congestion_seconds=3e-3, hop_bytes=9e6, average_dilation=4.5
        ),
    )


def test_a_comparison_holds_what_is_known_only() -> None:
    row = info()
    found = comparison("congestion_seconds", 2e-3, row.in_order, row.random, 1e-3)
    assert found == {"in order": 4e-3, "placed": 2e-3, "lower bound": 1e-3}
    assert list(comparison("hop_bytes", 1.0, None, None, None)) == ["placed"]


@pytest.mark.parametrize(
    ("value", "before", "expected"),
    [
        (50.0, 100.0, ("-50.0 % against in order", True)),
        (101.0, 100.0, ("+1.0 % against in order", False)),
        (100.01, 100.0, ("as in order", None)),
        (1.0, 0.0, (None, None)),
        (1.0, None, (None, None)),
    ],
)
def test_a_change_is_shown_in_percent(
    value: float, before: float | None, expected: tuple[object, object]
) -> None:
    assert relative_change(value, before) == expected


def test_the_text_of_a_placement_has_profile_job_cost_and_id() -> None:
    assert placement_text(info()) == "cg_16 · job 4711 · 2 ms · greedy · 2026-01-01 00:00:00 UTC · p1"


def test_communication_sums_all_bytes_whatever_the_bins() -> None:
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, 100, (2, 3000))
    profile = Profile.from_edges(source, target, rng.random(3000), ranks=100)
    for bins in (1, 7, 64, 512):
        matrix = communication(profile, bins)
        assert matrix.shape == (min(bins, 100),) * 2
        assert matrix.sum() == pytest.approx(profile.bytes.sum())


def test_communication_of_few_ranks_has_a_cell_a_pair() -> None:
    profile = Profile.from_edges([0, 2], [1, 0], [5.0, 7.0], ranks=3)
    assert communication(profile).tolist() == [[0, 5, 0], [0, 0, 0], [7, 0, 0]]


def test_ranks_of_each_host_are_folded() -> None:
    table = ranks_per_host(["b", "a"], {"in order": ["b", "b", "a"], "placed": ["a", "b", "b"]})
    assert table.to_dict("records") == [
        {"host": "b", "ranks": 2, "in order": "0-1", "placed": "1-2"},
        {"host": "a", "ranks": 1, "in order": "2", "placed": "0"},
    ]


@pytest.mark.parametrize(
    ("value", "base", "expected"),
    [
        (0.0123, units.SECONDS, "12.3 ms"),
        (61.0, units.SECONDS, "61 s"),
        (3e-10, units.SECONDS, "0.3 ns"),
        (0.0, units.SECONDS, "0 s"),
        (123456.0, units.BYTES, "123.5 kB"),
        (50e9, units.RATE, "50 GB/s"),
        (2.5, units.HOPS, "2.5 hops"),
    ],
)
def test_values_are_written_with_a_unit_that_suits(value: float, base: str, expected: str) -> None:
    assert units.text(value, base) == expected


def test_text_of_the_database_is_no_markup() -> None:
    assert plain("a_b") == "a\\_b"
    assert plain("<b>") == "\\<b\\>"
    assert plain("# x\n- y") == "\\# x \\- y"
    assert plain(":red[x] $y$ `z`") == "\\:red\\[x\\] \\$y\\$ \\`z\\`"
