"""Objectives as texts: levels in order, sums relative to a reference, ties decided in the end."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mapping
from mapping.distances.background import Background
from mapping.distances.cost_model import CostModel
from mapping.placement.case import PlacementCase
from mapping.placement.problem.objective import METRICS, Score, better, parse_objective, score
from mapping.placement.problem.problem import Problem
from mapping.placement.search.options import SearchOptions
from registry.errors import InvalidValue, UnknownName
from registry.model import Ints, Placement
from tests.support.search_problems import placed_problems, ring

values = st.floats(0, 10).map(lambda value: round(value, 1))
scores = st.builds(Score, values, values, values, values, values)


def test_a_text_is_levels_of_weighted_sums() -> None:
    objective = parse_objective("2*congestion+hop-bytes,max-dilation")
    assert [[(term.metric, term.weight) for term in level] for level in objective.asked] == [
        [("congestion", 2.0), ("hop-bytes", 1.0)],
        [("max-dilation", 1.0)],
    ]
    assert str(objective) == "2*congestion+hop-bytes,max-dilation"
    assert objective.leading == "congestion"
    assert parse_objective("hop-bytes+1e1*network-congestion").leading == "network-congestion"


def test_the_levels_of_congestion_decide_after_the_given_ones() -> None:
    names = {
        "congestion": ["congestion", "network-congestion", "hop-bytes"],
        "hop-bytes": ["hop-bytes", "congestion", "network-congestion"],
        "dilation": ["dilation", "congestion", "network-congestion"],
        "max-dilation": ["max-dilation", "congestion", "network-congestion", "hop-bytes"],
        "network-congestion,hop-bytes": ["network-congestion", "hop-bytes", "congestion"],
    }
    for text, levels in names.items():
        assert [level[0].metric for level in parse_objective(text).levels] == levels


@given(one=scores, other=scores, text=st.sampled_from(sorted(METRICS)))
def test_the_first_level_that_differs_decides(one: Score, other: Score, text: str) -> None:
    order = [term.field for level in parse_objective(text).levels for term in level]
    wanted = [getattr(one, name) for name in order] < [getattr(other, name) for name in order]
    assert better(text, one, other) == wanted
    assert not (better(text, one, other) and better(text, other, one))


@given(one=scores, other=scores)
def test_a_sum_counts_each_metric_relative_to_the_reference(one: Score, other: Score) -> None:
    reference = Score(4.0, 2.0, 8.0)
    objective = parse_objective("3*congestion+hop-bytes").relative_to(reference)

    def value(found: Score) -> float:
        return 3 * found.congestion_seconds / 4 + found.hop_bytes / 8

    assert objective.value(one) == pytest.approx(value(one))
    if not math.isclose(value(one), value(other), rel_tol=1e-6):
        assert better(objective, one, other) == (value(one) < value(other))


def test_what_the_reference_has_none_of_is_worse_or_as_good() -> None:
    objective = parse_objective("congestion+network-congestion").relative_to(Score(1.0, 0.0, 1.0))
    assert objective.value(Score(1.0, 0.0, 1.0)) == 2.0
    assert objective.value(Score(0.5, 0.1, 1.0)) == math.inf


def test_a_sum_without_a_reference_is_refused() -> None:
    with pytest.raises(InvalidValue, match="different units"):
        better("congestion+hop-bytes", Score(1, 1, 1), Score(2, 2, 2))


@pytest.mark.parametrize("text", ["", "congestion,", "+hop-bytes", "congestoin", "2*", "hop_bytes"])
def test_an_unknown_metric_is_refused(text: str) -> None:
    with pytest.raises(UnknownName):
        parse_objective(text)


@pytest.mark.parametrize(
    "text", ["0*congestion", "-1*congestion", "x*congestion", "nan*congestion", "*congestion"]
)
def test_a_weight_that_is_not_above_zero_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="weight"):
        parse_objective(text)


@given(case=placed_problems())
def test_scores_are_those_of_evaluate(case: tuple[Problem, Ints]) -> None:
    problem, hosts = case
    routes, allocation = problem.routes, problem.allocation
    placement = Placement(host_of_rank=allocation.hosts[hosts], allocation=allocation, strategy="given")
    known = mapping.evaluate(routes.fabric, problem.profile, placement, costs=CostModel(routing=routes.name))
    found = score(problem, hosts)
    assert found.congestion_seconds == pytest.approx(known.congestion_seconds)
    assert found.network_congestion_seconds == pytest.approx(known.network_congestion_seconds)
    assert found.hop_bytes == pytest.approx(known.hop_bytes)
    assert found.mean_congestion_seconds == pytest.approx(known.mean_congestion_seconds)
    assert found.max_dilation <= known.max_dilation + 1e-9  # pairs that send no bytes are none of a problem's


@pytest.mark.parametrize("kind", ["added", "reduced"])
def test_scores_with_load_of_others_are_those_of_evaluate(kind: str) -> None:
    fabric, profile, allocation = ring(6, 6)
    load = np.linspace(0.0, 0.9, len(fabric.links))
    background = Background(kind=kind, load=load)
    costs = CostModel(background=background)
    problem = PlacementCase(fabric=fabric, profile=profile, allocation=allocation, costs=costs).problem()
    hosts = problem.slot_host
    placement = Placement(host_of_rank=allocation.hosts[hosts], allocation=allocation, strategy="given")
    known = mapping.evaluate(fabric, profile, placement, costs=CostModel(background=background))
    found = score(problem, hosts)
    assert found.congestion_seconds == pytest.approx(known.congestion_seconds)
    assert found.mean_congestion_seconds == pytest.approx(known.mean_congestion_seconds)
    assert found.hop_bytes == pytest.approx(known.hop_bytes)


@pytest.mark.parametrize("objective", ["mapping-coefficient", "hop-bytes"])
def test_a_convention_of_distance_is_what_hop_bytes_count(objective: str) -> None:
    fabric, profile, allocation = ring(6, 6)
    options = SearchOptions(objective=objective)
    case = PlacementCase(fabric=fabric, profile=profile, allocation=allocation, options=options)
    for name in ("links", "switches", "equivalent", "equivalent+2"):
        problem = replace(case, costs=CostModel(distance=name)).problem()
        source, target, size = problem.host_traffic(problem.slot_host)
        told = float(size @ problem.distances.of(source, target))
        assert problem.distances.name == name
        assert score(problem, problem.slot_host).hop_bytes == pytest.approx(told)
    assert case.problem().distances.name == (
        "equivalent+2" if objective == "mapping-coefficient" else "links"
    )


BOUNDS = {"congestion_seconds": 4.0, "network_congestion_seconds": 2.0, "hop_bytes": 9.0}


@pytest.mark.parametrize(
    ("text", "values", "optimal"),
    [
        ("congestion", (4.0, 2.0, 99.0), True),
        ("congestion", (4.0, 3.0, 9.0), False),  # only a host's own cable is at its bound
        ("network-congestion", (5.0, 2.0, 99.0), True),
        ("hop-bytes", (5.0, 3.0, 9.0 * (1 + 5e-9)), True),
        ("hop-bytes", (4.0, 2.0, 9.0 * (1 + 2e-8)), False),
        ("congestion,hop-bytes", (4.0, 3.0, 9.0), True),
        ("congestion+hop-bytes", (4.0, 3.0, 9.1), False),
        ("congestion+hop-bytes", (4.0, 3.0, 9.0), True),
        ("max-dilation", (4.0, 2.0, 9.0), False),  # has no bound
    ],
)
def test_a_score_is_optimal_if_it_meets_the_bounds_of_all_levels(
    text: str, values: tuple[float, float, float], optimal: bool
) -> None:
    objective = parse_objective(text)
    assert objective.bounded_by(BOUNDS).is_optimal(Score(*values)) is optimal
    assert not objective.is_optimal(Score(*values))  # without bounds nothing is known
