"""The cost model of a request: routing, rails, distances and the load of other jobs.

Load of other jobs on the links (background): as bytes, or as reduced capacity.

``added``
    Other jobs send these bytes in the same period as the job. The time of a link is all bytes, theirs and the
    job's, divided by its capacity.
``reduced``
    Other jobs send at these rates (bytes/s) all the time. The time of a link is the job's bytes divided by
    the remaining capacity, which is at least a given part (`Background.floor`) of the link's own.

A link that only other jobs load costs this job nothing: it does not count in any congestion. `InvalidValue`
is raised for loads that are no loads, and for those of a fabric with another number of links.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mapping.distances.distances import LINKS, Distances, distances
from mapping.routing.catalog import build_routes, choose_routing
from mapping.routing.routes import ALL_CONNECTED, Routes
from registry.errors import InvalidValue
from registry.model import Evaluation, Fabric, Floats
from registry.model.views import one_line

ADDED, REDUCED = "added", "reduced"
FLOOR = 0.01
"""Part of a link's capacity that always remains, whatever other jobs send."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Background:
    """Load of other jobs on the links of a fabric."""

    kind: str
    """``added`` or ``reduced``."""
    load: Floats
    """float64[m]: Load of each row of ``fabric.links``: bytes per iteration if `added`, bytes/s if `reduced`;
    >= 0."""
    jobs: int = 1
    """Number of other jobs, for the description."""
    floor: float = FLOOR
    """For `reduced`: part of each link's capacity that always remains, above 0 and at most 1."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        if self.kind not in (ADDED, REDUCED):
            raise InvalidValue("Background.kind", f"is {self.kind!r}, must be {ADDED!r} or {REDUCED!r}")
        load = np.array(self.load, np.float64)
        if load.ndim != 1:
            raise InvalidValue("Background.load", f"has {load.ndim} dimensions, must have 1")
        fault = ~(np.isfinite(load) & (load >= 0))
        if fault.any():
            row = int(np.argmax(fault))
            raise InvalidValue("Background.load", f"{load[row]:g} on link {row} is negative or not finite")
        if not 0 < self.floor <= 1:
            raise InvalidValue("Background.floor", f"{self.floor:g} must be above 0 and at most 1")
        load.flags.writeable = False
        object.__setattr__(self, "load", load)

    @classmethod
    def added(cls, evaluations: Sequence[Evaluation], *, times: ArrayLike = 1.0) -> Self:
        """Return the bytes of other jobs' placements, each multiplied by its iterations in one period.

        Args:
            evaluations: Evaluations of the other jobs' placements on the same fabric.
            times (float or float[jobs]): Iterations of each other job while this job sends what its profile
                holds.
        """
        return cls(kind=ADDED, load=_summed(evaluations, times), jobs=len(evaluations))

    @classmethod
    def reduced(cls, evaluations: Sequence[Evaluation], seconds: ArrayLike, *, floor: float = FLOOR) -> Self:
        """Return the rates of other jobs' placements as reduced capacity.

        Args:
            seconds (float or float[jobs]): Time in which each job sends what its evaluation holds; above
                zero.
        """
        period = np.broadcast_to(np.asarray(seconds, np.float64), (len(evaluations),))
        if not bool((period > 0).all()):
            raise InvalidValue("Background.seconds", "a job's period must be above zero")
        return cls(kind=REDUCED, load=_summed(evaluations, 1.0 / period), jobs=len(evaluations), floor=floor)

    def link_bytes(self, fabric: Fabric) -> Floats:
        """Return the bytes of other jobs on the links (float64[m]); zero if capacity is reduced instead."""
        self._check(fabric)
        return self.load if self.kind == ADDED else np.zeros(len(self.load))

    def capacity(self, fabric: Fabric) -> Floats:
        """Return the remaining capacity (bytes/s, float64[m]): at least `floor` times each link's own."""
        self._check(fabric)
        own = fabric.links.capacity
        return own if self.kind == ADDED else np.maximum(own - self.load, self.floor * own)

    def floored(self, fabric: Fabric) -> int:
        """Return the number of links whose remaining capacity would be below the floor."""
        own = fabric.links.capacity
        return int((own - self.load < self.floor * own).sum()) if self.kind == REDUCED else 0

    def description(self, fabric: Fabric) -> str:
        """Return the background in words, as stored with an evaluation."""
        jobs = f"{self.jobs} other job" + "s" * (self.jobs != 1)
        if self.kind == ADDED:
            return f"added: {self.load.sum():.6g} bytes of {jobs} on all links"
        floored = self.floored(fabric)
        return (
            f"reduced: the capacity that {jobs} leave{'s' * (self.jobs == 1)}, at least {self.floor:g}"
            f" of each link ({floored} links at that)"
        )

    def _check(self, fabric: Fabric) -> None:
        if len(self.load) != len(fabric.links):
            raise InvalidValue(
                "Background.load", f"has {len(self.load)} entries for {len(fabric.links)} links"
            )


def _summed(evaluations: Iterable[Evaluation], times: ArrayLike) -> Floats:
    loads = [evaluation.link_bytes for evaluation in evaluations]
    if not loads:
        raise InvalidValue("Background.load", "at least one other job is needed")
    if len({len(load) for load in loads}) != 1:
        raise InvalidValue("Background.load", "the evaluations of other jobs belong to different fabrics")
    weight = np.broadcast_to(np.asarray(times, np.float64), (len(loads),))
    return np.asarray(weight @ np.stack(loads), np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CostModel:
    """How the cost of a placement is computed; names are checked when they are used."""

    routing: str | None = None
    """A routing with its options, such as ``up-down:root=n6`` (`mapping.routing.catalog`); default: the
    forwarding tables if they connect all hosts, else all shortest paths."""
    rails: str = ALL_CONNECTED
    """How a pair's bytes are divided over adapters: ``all-connected`` or ``same-rail``."""
    distance: str | None = None
    """One of `mapping.distances.distances.CONVENTIONS`; default: ``equivalent+2`` if the objective is the
    mapping coefficient, else ``links``."""
    table: Any = None
    """DistanceTable or float[h, h]: Distances for the convention ``table``; an array is in the order of the
    allocation's hosts."""
    one_way: bool = False
    """True if the table may differ by direction."""
    packet_bytes: float | None = None
    """Count packets of this size in the mapping coefficient instead of bytes (Orduña, Silla and Duato 2004,
    section 4.1)."""
    background: Background | None = None
    """Load of other jobs."""

    __repr__ = one_line

    def choose_routing(self, fabric: Fabric) -> tuple[str, str]:
        """Return the routing to use on a fabric and the reason for it."""
        return choose_routing(fabric) if self.routing is None else (self.routing, "as asked for")

    def build_routes(self, fabric: Fabric, hosts: ArrayLike) -> Routes:
        """Build the routes between hosts (vertices of the fabric)."""
        return build_routes(self.choose_routing(fabric)[0], fabric, hosts, rails=self.rails)

    def distances(self, routes: Routes, default: str = LINKS) -> Distances | None:
        """Return the distances between the hosts of `routes`, or None for the links that routes cross.

        Args:
            default: Convention if the cost model names none.
        """
        name = self.distance or default
        if name == LINKS and self.table is None:
            return None
        return distances(name, routes, table=self.table, one_way=self.one_way)

    def parameters(self, fabric: Fabric) -> dict[str, str | int]:
        """Return what a placement records about the cost model beside the routing."""
        return {
            "rails": self.rails,
            **({} if self.distance is None else {"distance": self.distance}),
            **({} if self.background is None else {"background": self.background.description(fabric)}),
        }
