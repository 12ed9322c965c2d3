"""What is found is never worse than a row beside it, and bounds are those of what is searched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ingest.generate.tori import torus
from mapping.evaluation import report
from mapping.evaluation.metrics import evaluate_on
from mapping.evaluation.report import RANDOM_SEEDS, report_placement
from mapping.placement.case import PlacementCase
from mapping.placement.search.options import SearchOptions
from mapping.placement.strategies.baselines import in_order, random_placement
from registry import Allocation, Fabric, Profile
from registry.model import Evaluation, Placement

RING = torus((16,))


def case_of(profile: Profile, fabric: Fabric = RING, slots: int = 1, **options: object) -> PlacementCase:
    return PlacementCase(
        fabric=fabric,
        profile=profile,
        allocation=Allocation.of(fabric, fabric.hosts, slots),
        options=SearchOptions(**options),  # type: ignore[arg-type]
    )


def far_pairs(count: int) -> Profile:
    """Return pairs of ranks half the ranks apart, so that ranks in order are far worse than at random."""
    half = count // 2
    return Profile.from_edges(range(half), range(half, count), [1.0] * half, ranks=count)


@pytest.mark.parametrize(
    ("objective", "metrics"),
    [
        ("congestion", ["congestion_seconds"]),
        ("hop-bytes", ["hop_bytes"]),
        ("congestion+hop-bytes", ["congestion_seconds", "hop_bytes"]),
        ("max-dilation", ["max_dilation"]),
    ],
)
def test_a_search_that_finds_nothing_returns_the_best_row(
    objective: str, metrics: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(case: PlacementCase, *_: object) -> Placement:
        return replace(in_order(case.profile.ranks, case.allocation), objective=objective)

    monkeypatch.setattr(report, "find_placement", nothing)
    case = case_of(far_pairs(16), objective=objective)
    found = report_placement(case)
    straight = found.in_order
    assert straight is not None
    rows = [evaluate_on(case, random_placement(16, case.allocation, seed)) for seed in RANDOM_SEEDS]

    def value(one: Evaluation) -> float:
        return sum(float(getattr(one, metric) / getattr(straight, metric)) for metric in metrics)

    assert value(found.evaluation) == min(value(one) for one in (straight, *rows)) < len(metrics)
    assert (found.placement.strategy, found.placement.objective) == ("random", objective)
    assert found.placement.seed in RANDOM_SEEDS
    assert not found.above_in_order


def test_a_named_strategy_is_shown_as_it_is() -> None:
    found = report_placement(case_of(far_pairs(16), strategies=["in-order"], steps=1))
    assert found.placement.strategy == "in-order"


def test_rows_beside_pinned_ranks_have_them_pinned() -> None:
    case = case_of(far_pairs(16), steps=1)
    case = PlacementCase(
        fabric=case.fabric,
        profile=case.profile,
        allocation=case.allocation,
        options=case.options,
        pins={0: RING.names[8], 8: RING.names[0]},
    )
    found = report_placement(case)
    assert found.placement.host_of_rank[[0, 8]].tolist() == [8, 0]
    assert found.in_order is not None
    assert found.evaluation.congestion_seconds <= found.in_order.congestion_seconds


def test_bounds_of_consecutive_ranks_are_those_of_orders_of_hosts() -> None:
    """A ring of 16 groups of 2 ranks whose groups exchange with the next: in order is best possible.

    Placements that may split groups could keep both partners on one host, so that their bound is zero.
    """
    ranks = np.arange(32)
    profile = Profile.from_edges(ranks, (ranks + 2) % 32, np.ones(32))
    case = case_of(profile, slots=2, consecutive=True, seconds=600.0)  # ends as soon as it is proved best
    found = report_placement(case)
    assert found.evaluation.congestion_seconds == 2.0  # both ranks of a group send over one link
    assert found.bounds["congestion_seconds"].value == pytest.approx(2.0)
    assert found.bounds["hop_bytes"].value == pytest.approx(32.0)
    assert "consecutive ranks" in found.bounds["congestion_seconds"].proof
    assert found.is_optimal
    split = report_placement(case_of(profile, slots=2, steps=50))
    assert split.bounds["congestion_seconds"].value < 2.0
    assert found.random is not None
    assert found.random.hop_bytes == pytest.approx(
        np.mean([_random_order(case, seed) for seed in RANDOM_SEEDS])
    )


def _random_order(case: PlacementCase, seed: int) -> float:
    """Return the hop-bytes of whole hosts in a random order."""
    order = np.random.default_rng(seed).permutation(16)
    hosts = np.repeat(case.allocation.hosts[order], 2)
    return evaluate_on(
        case, Placement(host_of_rank=hosts, allocation=case.allocation, strategy="given")
    ).hop_bytes
