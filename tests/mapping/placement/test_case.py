"""A placement case: its problem, pins, baselines and what placements record about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mapping.distances.cost_model import CostModel
from mapping.placement.case import GIVEN, IN_ORDER, PlacementCase
from mapping.placement.search.options import SearchOptions
from mapping.placement.strategies.baselines import in_order
from registry.errors import InfeasibleAllocation, InvalidPlacement
from registry.model import Allocation, Profile
from tests.support.search_problems import ring


def case_on_ring() -> PlacementCase:
    """Four ranks on a ring of four hosts, in the opposite order, with the first rank pinned to n01."""
    fabric, profile, _ = ring(4, 4)
    allocation = Allocation.of(fabric, [0, 1, 2, 3])
    present = replace(in_order(4, allocation), host_of_rank=allocation.hosts[::-1].copy())
    options = SearchOptions(objective="mapping-coefficient")
    return PlacementCase.of(fabric, profile, allocation, options, None, {0: "n01"}, present)


def test_baselines_are_the_present_placement_and_ranks_in_order_with_pins() -> None:
    case = case_on_ring()
    assert case.pinned_hosts().tolist() == [1, -1, -1, -1]
    found = {name: hosts.tolist() for name, hosts in case.baselines().items()}
    assert found == {GIVEN: [1, 2, 3, 0], IN_ORDER: [1, 0, 2, 3]}


def test_a_problem_has_the_hosts_pins_and_distances_of_the_case() -> None:
    case = case_on_ring()
    problem = case.problem()
    assert (problem.ranks, problem.hosts, problem.pins.tolist()) == (4, 4, [1, -1, -1, -1])
    assert case.distance == "equivalent+2"
    assert problem.own_distances is not None
    assert case.problem("links").own_distances is None
    assert problem.routes is case.routes


def test_a_placement_records_rails_and_the_number_of_pins() -> None:
    assert case_on_ring().parameters == {"rails": "all-connected", "pins": 1}
    case = replace(case_on_ring(), pins={}, costs=CostModel(rails="same-rail", distance="links"))
    assert case.parameters == {"rails": "same-rail", "distance": "links"}
    assert case.routing_reason == "the fabric has no forwarding tables"


def test_what_does_not_fit_is_an_error() -> None:
    case = case_on_ring()
    three = Allocation.of(case.fabric, [0, 1, 2])
    with pytest.raises(InfeasibleAllocation):
        replace(case, allocation=three, pins={}).problem()
    with pytest.raises(InvalidPlacement, match="4 ranks are placed, the profile has 2: if the last ranks"):
        replace(case, profile=Profile.from_edges([0], [1], [1.0])).baselines()
    assert case.present is not None
    with pytest.raises(InvalidPlacement):
        replace(case, allocation=three).host_indices(case.present)
