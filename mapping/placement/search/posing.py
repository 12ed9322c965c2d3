"""A problem, and what is to be made of it, from a fabric, a profile, an allocation and options in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mapping.distances.background import Background
from mapping.distances.distances import EQUIVALENT_2, LINKS, distances
from mapping.distances.grouped_distances import Distances
from mapping.placement.problem.objective import Objective
from mapping.placement.problem.pins import honour, pins_on
from mapping.placement.problem.problem import Problem, host_indices
from mapping.placement.strategies.in_order import in_order
from mapping.routing.catalog import build_routes, choose_routing
from mapping.routing.routes import ALL_CONNECTED, Routes
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Fabric, Ints, Placement, Profile

GIVEN = "given"
"""Name of the start that a caller gives."""
IN_ORDER = "in-order"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setting:
    """How placements of a search are routed and measured, and what must hold of them.

    Attributes
    ----------
    routing : str or None
        With its options (`mapping.routing.catalog`); None: tables where they join all hosts, else all
        shortest paths.
    rails : str
        ``all-connected`` or ``same-rail``.
    distance : str or None
        One of `mapping.distances.distances.CONVENTIONS`; None: ``equivalent+2`` where the objective is the
        mapping coefficient, else ``links``.
    table : DistanceTable or float[h, h] or None
        For the distance ``table``; an array goes by the allocation's order.
    one_way : bool
        The table may differ by direction.
    background : Background or None
        Other jobs' load.
    pins : mapping of int to str or int
        Rank -> host that it must sit on, by name or as a vertex.
    routes : function or None
        Gives the routes between the allocation's hosts under `routing` and `rails`, where somebody else
        needs them too; None: they are built.
    """

    routing: str | None = None
    rails: str = ALL_CONNECTED
    distance: str | None = None
    table: Any = None
    one_way: bool = False
    background: Background | None = None
    pins: Mapping[int, str | int] = field(default_factory=dict)
    routes: Callable[[], Routes] | None = None

    def problem(
        self, fabric: Fabric, profile: Profile, allocation: Allocation, objective: Objective
    ) -> Problem:
        """Build the routes and what hangs on them.

        Raises
        ------
        InfeasibleAllocation, InvalidPlacement, DisconnectedAllocation, UnreachablePair
        UnknownName, InvalidValue
        """
        allocation.require(profile.ranks)
        pins = pins_on(self.pins, profile.ranks, allocation, fabric)
        routes = self._build(fabric, allocation) if self.routes is None else self.routes()
        routes.require_connected()
        others = self.background
        none = np.zeros(0)
        return Problem(
            profile=profile,
            allocation=allocation,
            routes=routes,
            pins=pins,
            link_capacity=none if others is None else others.capacity(fabric),
            link_background=none if others is None else others.link_bytes(fabric),
            own_distances=self._distances(routes, objective),
        )

    def told(self, fabric: Fabric) -> dict[str, str | int]:
        """What a placement's parameters say of it, beside the routing."""
        return {
            "rails": self.rails,
            **({} if self.distance is None else {"distance": self.distance}),
            **({} if self.background is None else {"background": self.background.told(fabric)}),
            **({"pins": len(self.pins)} if self.pins else {}),
        }

    def _build(self, fabric: Fabric, allocation: Allocation) -> Routes:
        name = choose_routing(fabric)[0] if self.routing is None else self.routing
        return build_routes(name, fabric, allocation.hosts, rails=self.rails)

    def _distances(self, routes: Routes, objective: Objective) -> Distances | None:
        """None for the problem's own: links that the routes cross."""
        name = self.distance
        if name is None:
            name = EQUIVALENT_2 if objective.leading == "mapping-coefficient" else LINKS
        if name == LINKS and self.table is None:
            return None
        return distances(name, routes, table=self.table, one_way=self.one_way)


def baselines(
    profile: Profile, allocation: Allocation, start: Placement | None, pins: Ints
) -> dict[str, Ints]:
    """Host indices of the start, where there is one, and of ranks in order; pins honoured.

    Raises
    ------
    InfeasibleAllocation
    InvalidPlacement
        The start does not fit the profile or the allocation.
    """
    found = {}
    if start is not None:
        found[GIVEN] = start_indices(profile, allocation, start)
    found[IN_ORDER] = host_indices(allocation, in_order(profile.ranks, allocation).host_of_rank)
    return {name: honour(pins, hosts, allocation.slots) for name, hosts in found.items()}


def start_indices(profile: Profile, allocation: Allocation, start: Placement) -> Ints:
    """int32[ranks]: the host index of each rank of a placement that must fit.

    Raises
    ------
    InvalidPlacement
    """
    if start.ranks != profile.ranks:
        raise InvalidPlacement(f"the start has {start.ranks} ranks, the profile {profile.ranks}")
    start = replace(start, allocation=allocation)  # checks that it fits
    return host_indices(allocation, start.host_of_rank)


def check_budget(seconds: float, steps: int | None) -> None:
    """Raise `InvalidValue` for a budget that makes no sense."""
    if steps is None and not 0 <= seconds < np.inf:
        raise InvalidValue("place.seconds", "must be finite and not below zero")
    if steps is not None and steps < 0:
        raise InvalidValue("place.steps", "must not be below zero")
