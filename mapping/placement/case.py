"""The data of a placement request, with all names resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from mapping.distances.cost_model import CostModel
from mapping.placement.methods.baselines import in_order
from mapping.placement.problem import (
    Problem,
    allocation_on,
    apply_pins,
    host_indices,
    placement_on,
    resolve_pins,
)
from mapping.placement.search import SearchOptions
from mapping.routing.routes import Routes
from registry.errors import WrongRanks
from registry.model import (
    Allocation,
    Fabric,
    HasFabric,
    HasJob,
    HasPlacement,
    HasProfile,
    Ints,
    Job,
    Placement,
    Profile,
)
from registry.model.hosts import HostLayout
from registry.model.views import content, one_line

GIVEN = "given"
"""Name of the present placement among the baselines of a search."""
IN_ORDER = "in-order"


@dataclass(frozen=True, kw_only=True, eq=False)
class PlacementCase:
    """A profile to place on the hosts of an allocation, or a placement to evaluate there."""

    fabric: Fabric
    profile: Profile
    allocation: Allocation
    costs: CostModel = field(default_factory=CostModel)
    options: SearchOptions = field(default_factory=SearchOptions)
    """How placements are searched; its objective decides on distances if the cost model names none."""
    present: Placement | None = None
    """Present placement of the ranks: results are never worse, and moves are counted from it."""
    present_name: str = ""
    """Id or file of the present placement; empty if it has none."""
    pins: Mapping[int, str | int] = field(default_factory=dict)
    """Rank -> the host that it must be on, by name or as a vertex of the fabric."""
    layouts: Mapping[str, HostLayout] = field(default_factory=dict)
    """Host layouts by name, or under `mapping.placement.methods.cores.ALL`: ranks get cores there."""
    cluster: str = ""
    snapshot: str = ""
    """Cluster of the fabric and id of its snapshot; the snapshot is empty if the fabric is from a file."""
    tables: str | None = None
    profile_id: str | None = None
    job: str | None = None
    """Ids of the forwarding tables, the profile and the job, if they are from the registry."""
    host_names: tuple[str, ...] = ()
    """Hosts as the job or the caller names them, which launchers know; empty: as the fabric does."""
    job_profile: str = ""
    """Name of the profile that is attached to the job, if the case has another one; else empty."""
    ungrouped: PlacementCase | None = field(default=None, repr=False)
    """Case of the ranks that this one places in groups, between the same hosts: both have one `routes`."""

    __repr__ = one_line

    @classmethod
    def of(
        cls,
        fabric: Fabric | HasFabric,
        profile: Profile | HasProfile,
        allocation: Allocation | Job | HasJob,
        options: SearchOptions,
        costs: CostModel | None,
        pins: Mapping[int, str | int] | None,
        present: Placement | HasPlacement | None,
    ) -> Self:
        """Return the case of data in memory.

        Raises:
            InvalidValue: Names an argument of the wrong type.
        """
        fabric = content(fabric, Fabric, "fabric")
        return cls(
            fabric=fabric,
            profile=content(profile, Profile, "profile"),
            allocation=allocation_on(fabric, allocation),
            costs=content(costs or CostModel(), CostModel, "costs"),
            options=options,
            pins=pins or {},
            present=None if present is None else placement_on(fabric, present, "present"),
        )

    @cached_property
    def routes(self) -> Routes:
        """Routes between the allocation's hosts, in its order; built once."""
        if self.ungrouped is not None:
            return self.ungrouped.routes
        return self.costs.build_routes(self.fabric, self.allocation.hosts)

    @property
    def routing_reason(self) -> str:
        """Why the routing was chosen."""
        return self.costs.choose_routing(self.fabric)[1]

    @property
    def parameters(self) -> dict[str, str | int]:
        """What a placement records about the case beside the routing."""
        pins = {"pins": len(self.pins)} if self.pins else {}
        return {**self.costs.parameters(self.fabric), **pins}

    def pinned_hosts(self) -> Ints:
        """Return int32[ranks]: the host index of each pinned rank, -1 for free ranks; see `resolve_pins`."""
        return resolve_pins(self.pins, self.profile.ranks, self.allocation, self.fabric)

    @property
    def distance(self) -> str:
        """Convention of distances."""
        return self.costs.distance or self.options.default_distance

    def problem(self, default_distance: str | None = None) -> Problem:
        """Return the input of a search on the case's routes.

        Args:
            default_distance: Instead of the case's.

        Raises:
            InfeasibleAllocation, InvalidPlacement, DisconnectedAllocation, UnreachablePair
            UnknownName, InvalidValue
        """
        self.allocation.require(self.profile.ranks)
        pins = self.pinned_hosts()
        self.routes.require_connected()
        others, none = self.costs.background, np.zeros(0)
        default = default_distance or self.options.default_distance
        return Problem(
            profile=self.profile,
            allocation=self.allocation,
            routes=self.routes,
            pins=pins,
            link_capacity=none if others is None else others.capacity(self.fabric),
            link_background=none if others is None else others.link_bytes(self.fabric),
            own_distances=self.costs.distances(self.routes, default),
        )

    def baselines(self) -> dict[str, Ints]:
        """Return the host indices of the present placement, if any, and of ranks in order, with pins.

        Raises:
            InfeasibleAllocation, UnknownName
            InvalidPlacement: The present placement does not fit the profile or the allocation.
        """
        pins, found = self.pinned_hosts(), {}
        if self.present is not None:
            found[GIVEN] = self.host_indices(self.present)
        straight = in_order(self.profile.ranks, self.allocation)
        found[IN_ORDER] = host_indices(self.allocation, straight.host_of_rank)
        return {name: apply_pins(pins, hosts, self.allocation.slots) for name, hosts in found.items()}

    def host_indices(self, placement: Placement) -> Ints:
        """Return int32[ranks]: the index in the allocation of each rank's host.

        Raises:
            InvalidPlacement: The placement does not fit the profile or the allocation.
        """
        if placement.ranks != self.profile.ranks:
            raise WrongRanks(placement.ranks, self.profile.ranks)
        fitting = replace(placement, allocation=self.allocation)  # checks that it fits
        return host_indices(self.allocation, fitting.host_of_rank)
