"""Simulation requests: what is replayed, which runs are saved, and the busiest links of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mapping.placement.search.options import SearchOptions
from mapping.service.placing import place
from mapping.service.request import PlacementRequest
from mapping.service.simulations import (
    SimulationOptions,
    SimulationRequest,
    simulate_placements,
    simulation_case,
)
from registry.errors import InvalidPlacement, UnknownName
from registry.model import HostOrder
from registry.registry import Registry

NEAR = HostOrder(hosts=("a0", "a1", "b0", "b1"), name="near.txt")
FAR = HostOrder(hosts=("a0", "b0", "a1", "b1"), name="far.txt")
REQUEST = SimulationRequest(
    profile="across", cluster="c", placements=(NEAR, FAR), options=SimulationOptions(rounds=2)
)


def test_each_placement_gets_a_run_and_files_are_not_saved(running: Registry) -> None:
    case = simulation_case(running, REQUEST)
    assert [(one.name, one.saved) for one in case.placed] == [("near.txt", False), ("far.txt", False)]
    report = simulate_placements(case, REQUEST.options, running)
    assert (report.complete, [run.id for run in report.runs]) == (True, [None, None])
    assert report.parameters["rounds"] == 2
    near, far = report.runs
    assert near.simulation.link_bytes.sum() == 4 * 8 * 2  # messages, bytes, links
    assert far.simulation.link_bytes.sum() == 4 * 8 * 3
    (busiest,) = report.busiest(far, 1)
    assert busiest.link.bytes == 2 * 8
    assert busiest.link.source.name in {"A", "B"}


def test_the_run_of_a_saved_placement_is_saved(running: Registry) -> None:
    options = SearchOptions(steps=50, workers=1)
    placed = place(running, PlacementRequest(profile="across", job="1", options=options)).record_id
    case = simulation_case(running, replace(REQUEST, placements=(placed,)))
    (run,) = simulate_placements(case, REQUEST.options, running).runs
    assert run.id is not None
    assert running.simulations.read(run.id).placement == placed
    (again,) = simulate_placements(case, REQUEST.options).runs
    assert again.id is None


def test_errors_of_the_request(running: Registry) -> None:
    with pytest.raises(InvalidPlacement, match=r"4 ranks are placed, the profile has 2: .*'# ranks: 4'"):
        simulation_case(running, replace(REQUEST, profile="one-way"))
    with pytest.raises(UnknownName, match="ingest its messages"):
        simulation_case(running, replace(REQUEST, options=SimulationOptions(scale=2.0)))
