"""Arguments of `mapping`: errors name them, stored objects stand for their content, cases hold them."""

# mypy: disable-error-code="arg-type, dict-item"

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

import mapping
from mapping import SearchOptions
from mapping.distances.cost_model import CostModel
from mapping.launchers.catalog import write
from mapping.placement.case import GIVEN, IN_ORDER, PlacementCase
from mapping.placement.strategies.baselines import in_order
from mapping.simulation.messages import from_profile
from mapping.simulation.simulate import simulate
from registry.errors import AlmanacError, InfeasibleAllocation, InvalidPlacement
from registry.fabrics.fabrics import Snapshot
from registry.jobs.jobs import StoredJob
from registry.model import Allocation, Fabric, Job, Profile
from registry.profiles import StoredProfile
from registry.records.placements.records import StoredPlacement
from tests.support.search_problems import ring

place = mapping.place
RING = Fabric.from_arcs([f"n{i}" for i in range(4)], [0, 1, 2, 3] * 2, [1, 2, 3, 0, 3, 0, 1, 2], 1.0)
PROFILE = Profile.from_edges([0, 1, 2, 3], [1, 2, 3, 0], [8.0] * 4)
ALL = Allocation.of(RING, [0, 1, 2, 3])
PLACED = in_order(4, ALL)
NOW = datetime(2026, 11, 23, tzinfo=UTC)
SNAPSHOT = Snapshot(cluster="toy", id="1", observed_at=NOW, routing=None, fabric=RING)
STORED = StoredProfile(id="1", profile=PROFILE, names=("ring",), recorded_at=NOW)
JOB = StoredJob(
    id="toy/1", cluster="toy", job=Job(id="1", hosts=RING.names, slots=(1, 1, 1, 1)), profile=None, as_of=NOW
)


def stored(hosts: tuple[str, ...]) -> StoredPlacement:
    return StoredPlacement(cluster="toy", content="1", placement=PLACED, id="1", hosts=hosts, recorded_at=NOW)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: place(PROFILE, RING, ALL), "fabric: must be a Fabric, not a Profile"),
        (lambda: place(RING, ALL, PROFILE), "profile: must be a Profile, not an Allocation"),
        (lambda: place(RING, PROFILE, [0, 1, 2, 3]), "allocation: must be an Allocation, not a list"),
        (lambda: place(RING, PROFILE, ALL, CostModel()), "options: must be a SearchOptions, not a CostModel"),
        (lambda: place(RING, PROFILE, ALL, None, 5), "costs: must be a CostModel, not an int"),
        (
            lambda: place(RING, PROFILE, ALL, present=np.arange(4)),
            "present: must be a Placement, not an array",
        ),
        (lambda: place(RING, PROFILE, ALL, pins=[0]), "pins: must map ranks to hosts"),
        (lambda: place(RING, PROFILE, ALL, pins={0: 1.5}), "pins: must be a whole number, not 1.5"),
        (lambda: place(RING, PROFILE, ALL, pins={0.5: 1}), "pins: must be a whole number, not 0.5"),
        (
            lambda: place(RING, PROFILE, ALL, secnods=2),
            "there is no search option 'secnods'; closest: seconds",
        ),
        (
            lambda: place(RING, PROFILE, Allocation(hosts=[0, 9], slots=[2, 2])),
            "allocation: vertex 9 is not in the fabric",
        ),
        (
            lambda: mapping.evaluate(RING, PROFILE, np.arange(4)),
            "placement: must be a Placement, not an array",
        ),
        (lambda: mapping.evaluate(RING, PROFILE, ALL), "placement: must be a Placement, not an Allocation"),
        (lambda: mapping.remap_few(RING, PROFILE, ALL, present=None), "present placement is needed"),
        (lambda: place(RING, PROFILE, ALL, objective=5), "objective: must be a str, not an int"),
        (lambda: place(RING, PROFILE, ALL, executor=5, steps=9), "executor: must be a name or have"),
        (lambda: CostModel(routing=5).build_routes(RING, [0]), "routing: must be a Routing, not an int"),
        (lambda: mapping.advise(PLACED), "curve: must be a Curve, not a Placement"),
        (lambda: write("csv", RING, PLACED), "fabric: must be a Fabric, not a Placement"),
        (lambda: write("csv", np.arange(4), RING), "placement: must be a Placement, not an array"),
        (lambda: simulate(PLACED, RING, from_profile(PROFILE)), "fabric: must be a Fabric, not a Placement"),
        (lambda: simulate(RING, PLACED, from_profile(PROFILE), seed=-1), "seed: must not be below zero"),
    ],
)
def test_an_error_names_the_argument(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(AlmanacError) as caught:
        call()
    assert message in str(caught.value)


def test_stored_objects_and_points_are_taken_as_their_content() -> None:
    plain = mapping.place(RING, PROFILE, ALL, SearchOptions(steps=100))
    found = mapping.place(SNAPSHOT, STORED, JOB, steps=100)
    assert found.host_of_rank.tolist() == plain.host_of_rank.tolist()
    one = mapping.evaluate(SNAPSHOT, STORED, stored(RING.names), bounds=True)
    assert one.hop_bytes == mapping.evaluate(RING, PROFILE, PLACED).hop_bytes == 32.0
    curve = mapping.remap_few(RING, PROFILE, ALL, present=PLACED, steps=50)
    assert mapping.evaluate(RING, PROFILE, curve.points[0]).hop_bytes == 32.0
    with pytest.raises(InvalidPlacement, match="another state of the fabric"):
        mapping.evaluate(SNAPSHOT, STORED, stored(("n0", "n1", "n3", "n2")))


def test_all_functions_take_the_same_arguments() -> None:
    same: dict[str, Any] = {"costs": CostModel(routing="shortest-paths"), "pins": {0: "n1"}, "steps": 200}
    found = place(RING, PROFILE, ALL, present=PLACED, **same)
    curve = mapping.remap_few(RING, PROFILE, ALL, present=PLACED, **same)
    several = mapping.pareto(RING, PROFILE, ALL, present=PLACED, **same)
    assert all(one.host_of_rank[0] == 1 for one in (found, curve.points[-1].placement, *several))
    assert mapping.evaluate(RING, PROFILE, found, **same).congestion_seconds == 8.0
    with pytest.raises(InvalidPlacement, match="rank 0 is not on the host that it is pinned to"):
        mapping.evaluate(RING, PROFILE, PLACED, **same)


def test_evaluate_measures_distances_as_the_search_did() -> None:
    found = mapping.evaluate(RING, PROFILE, PLACED, objective="mapping-coefficient")
    assert found.distance == "equivalent+2"
    assert mapping.evaluate(RING, PROFILE, PLACED).distance == "links"


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
