"""Searches and problems as benchmarks need them, on all shortest paths if no other routing is named."""

from __future__ import annotations

from typing import Any

from mapping.distances.cost_model import CostModel
from mapping.placement.place import place
from mapping.placement.problem import Problem
from mapping.placement.search import SearchOptions
from mapping.routing.catalog import build_routes
from registry.model import Allocation, Fabric, Placement, Profile

ROUTING = "shortest-paths"


def searched(
    fabric: Fabric, profile: Profile, allocation: Allocation, routing: str = ROUTING, **options: Any
) -> Placement:
    """Return the placement of our search with these `SearchOptions`."""
    return place(fabric, profile, allocation, SearchOptions(**options), CostModel(routing=routing))


def problem_of(fabric: Fabric, profile: Profile, allocation: Allocation, routing: str = ROUTING) -> Problem:
    """Return the problem of a profile on the hosts of an allocation."""
    routes = build_routes(routing, fabric, allocation.hosts)
    return Problem(profile=profile, allocation=allocation, routes=routes)
