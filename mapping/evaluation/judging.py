"""Several placements of one profile, evaluated on routes that are built once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from mapping.distances.background import Background
from mapping.evaluation.bounds import lower_bounds
from mapping.evaluation.metrics import Coefficient, evaluation
from mapping.evaluation.report import RANDOM_SEEDS
from mapping.placement.problem.problem import host_indices
from mapping.placement.strategies.in_order import in_order
from mapping.placement.strategies.random import random_placement
from mapping.routing.catalog import build_routes
from mapping.routing.routes import ALL_CONNECTED, Routes
from mapping.routing.traffic import host_traffic
from registry.errors import InvalidPlacement
from registry.model import Allocation, Bound, Evaluation, Fabric, Metrics, Placement, Profile


class Judge:
    """Evaluates placements on an allocation.

    Parameters
    ----------
    fabric : Fabric
    profile : Profile
    allocation : Allocation
        All placements sit on its hosts.
    routing : str
        With its options.
    rails : str
    coefficient : Coefficient, optional
        How the mapping coefficient counts.
    background : Background, optional
        Other jobs' load.
    """

    def __init__(
        self,
        fabric: Fabric,
        profile: Profile,
        allocation: Allocation,
        *,
        routing: str,
        rails: str = ALL_CONNECTED,
        coefficient: Coefficient | None = None,
        background: Background | None = None,
    ) -> None:
        self._fabric = fabric
        self._profile = profile
        self._allocation = allocation
        self._routing = routing
        self._rails = rails
        self._coefficient = coefficient or Coefficient()
        self._background = background

    @cached_property
    def routes(self) -> Routes:
        """Between the allocation's hosts, in its order."""
        return build_routes(self._routing, self._fabric, self._allocation.hosts, rails=self._rails)

    @cached_property
    def bounds(self) -> Mapping[str, Bound]:
        """Certified lower bounds for every placement on the allocation.

        Raises
        ------
        DisconnectedAllocation, UnreachablePair
        """
        return lower_bounds(self.routes, self._profile, self._allocation, background=self._background)

    def evaluate(self, placement: Placement, *, bounds: bool = False) -> Evaluation:
        """What a placement costs.

        Raises
        ------
        InvalidPlacement
            A host that is not of the allocation, or another number of ranks.
        DisconnectedAllocation, UnreachablePair
        """
        counting = self._coefficient
        traffic = host_traffic(self._profile, placement, packet_bytes=counting.packet_bytes)
        elsewhere = np.setdiff1d(traffic.hosts, self._allocation.hosts)
        if len(elsewhere):
            raise InvalidPlacement(f"{self._fabric.names[int(elsewhere[0])]} is not of the allocation")
        at = host_indices(self._allocation, traffic.hosts).astype(np.int64)
        here = traffic._replace(
            hosts=self._allocation.hosts, source=at[traffic.source], target=at[traffic.target]
        )
        return evaluation(
            self.routes,
            here,
            float(self._profile.bytes.sum()),
            bounds=self.bounds if bounds else None,
            coefficient=counting,
            background=self._background,
        )

    def in_order(self) -> Evaluation:
        """Of the ranks in order."""
        return self.evaluate(in_order(self._profile.ranks, self._allocation))

    def at_random(self) -> Metrics:
        """Mean over the random placements of `mapping.evaluation.report.RANDOM_SEEDS`."""
        ranks = self._profile.ranks
        several = [random_placement(ranks, self._allocation, seed) for seed in RANDOM_SEEDS]
        return Metrics.mean([Metrics.of(self.evaluate(one)) for one in several])
