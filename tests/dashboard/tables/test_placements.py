from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

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
from dashboard.widgets.messages import plain
from registry.model import Allocation, Bound, Evaluation, Metrics, Placement, Profile
from registry.records.placements.records import PRESENT, PROPOSED, StoredPlacement, StoredPlacementInfo


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


def test_text_of_the_database_is_no_markup() -> None:
    assert plain("a_b") == "a\\_b"
    assert plain("<b>") == "\\<b\\>"
    assert plain("# x\n- y") == "\\# x \\- y"
    assert plain(":red[x] $y$ `z`") == "\\:red\\[x\\] \\$y\\$ \\`z\\`"


def stored(role: str, seconds: float, *, bound: float | None = None) -> StoredPlacement:
    """Return a placement of two ranks on two hosts with this time of the worst link."""
    zero = np.zeros(0)
    bounds = {} if bound is None else {"congestion_seconds": Bound(value=bound, proof="cut")}
    evaluation = Evaluation(
        routing="tables",
        rails="each",
        congestion_seconds=seconds,
        network_congestion_seconds=seconds / 2,
        hop_bytes=4e6,
        total_bytes=2e6,
        average_dilation=2.0,
        max_dilation=3,
        mean_congestion_seconds=seconds / 4,
        link_bytes=zero,
        bounds=bounds,
    )
    allocation = Allocation(hosts=np.array([0, 1]), slots=np.array([1, 1]))
    placement = Placement(host_of_rank=np.array([0, 1]), allocation=allocation, strategy="greedy")
    return StoredPlacement(
        id=f"p-{role}",
        cluster="c",
        content="c/1",
        placement=placement,
        evaluation=evaluation,
        in_order=Metrics(
            congestion_seconds=9.0, network_congestion_seconds=8.0, hop_bytes=7.0, average_dilation=6.0
        ),
        random=Metrics(
            congestion_seconds=12.0, network_congestion_seconds=8.0, hop_bytes=7.0, average_dilation=6.0
        ),
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


def test_the_placements_of_a_job_are_listed() -> None:
    table = placements_table([info(), replace(info("p2"), role=PRESENT, congestion_seconds=None)])
    assert table["what"].tolist() == ["proposed", "ran with"]
    assert table["worst link"].tolist() == ["2 ms", ""]
