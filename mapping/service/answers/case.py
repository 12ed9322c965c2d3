"""What is placed or judged, wherever it was read from, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from mapping.distances.background import Background
from mapping.distances.distance_tables import DistanceTable
from mapping.distances.distances import EQUIVALENT_2, LINKS
from mapping.evaluation.judging import Judge
from mapping.evaluation.metrics import Coefficient
from mapping.placement.problem.objective import parse_objective
from mapping.placement.search.posing import Setting
from mapping.routing.catalog import choose_routing
from mapping.routing.routes import ALL_CONNECTED
from registry.model import Allocation, Fabric, Placement, Profile
from registry.model.host_layout import HostLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How to search, and how placements are measured.

    Attributes
    ----------
    objective : str
        See `mapping.placement.problem.objective`.
    routing : str or None
        With its options; None: forwarding tables where complete, else all shortest paths.
    rails : str
        How a pair's bytes are split over adapters: ``all-connected`` or ``same-rail``.
    distance : str or None
        Convention of distances; None: the objective's own.
    table : DistanceTable or None
        For the distance ``table``.
    pins : mapping of int to str
        Rank -> host that it must sit on.
    strategies : tuple of str or None
        None: the default portfolio.
    seconds : float
    steps : int or None
        Proposals instead of seconds: then the same seed gives the same bytes.
    seed : int
    workers : int or None
        Threads; None: the default.
    moves : int or None
        Of a present placement that is kept: most ranks that move.
    layouts : mapping of str to HostLayout
        By host, or under `mapping.placement.partition.cores.ALL`: ranks get cores there.
    """

    objective: str = "congestion"
    routing: str | None = None
    rails: str = ALL_CONNECTED
    distance: str | None = None
    table: DistanceTable | None = None
    pins: Mapping[int, str] = field(default_factory=dict)
    strategies: tuple[str, ...] | None = None
    seconds: float = 10.0
    steps: int | None = None
    seed: int = 0
    workers: int | None = None
    moves: int | None = None
    layouts: Mapping[str, HostLayout] = field(default_factory=dict)

    def coefficient(self) -> Coefficient:
        """How the mapping coefficient counts in evaluations."""
        leads = parse_objective(self.objective).leading == "mapping-coefficient"
        return Coefficient(distance=self.distance or (EQUIVALENT_2 if leads else LINKS), table=self.table)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """What is placed or judged, and where.

    Attributes
    ----------
    profile : Profile
    fabric : Fabric
    allocation : Allocation
    present : Placement or None
        Where the ranks sit now, to be kept as far as possible.
    background : Background or None
        Other jobs' load.
    cluster, snapshot : str
        Of the fabric; empty where it came from a file.
    tables, profile_id, job : str or None
        Ids of the forwarding tables, the profile and the job, where there are any.
    """

    profile: Profile
    fabric: Fabric
    allocation: Allocation
    present: Placement | None = None
    background: Background | None = None
    cluster: str = ""
    snapshot: str = ""
    tables: str | None = None
    profile_id: str | None = None
    job: str | None = None

    def routing(self, wanted: str | None) -> tuple[str, str]:
        """The routing, and why it was taken."""
        return choose_routing(self.fabric) if wanted is None else (wanted, "as asked for")

    def posed(self, search: Search) -> Posed:
        """What judges placements on the allocation and how searches measure them, on the same routes."""
        routing, because = self.routing(search.routing)
        judge = Judge(
            self.fabric,
            self.profile,
            self.allocation,
            routing=routing,
            rails=search.rails,
            coefficient=search.coefficient(),
            background=self.background,
        )
        setting = Setting(
            routing=routing,
            rails=search.rails,
            distance=search.distance,
            table=search.table,
            background=self.background,
            pins=search.pins,
            routes=lambda: judge.routes,
        )
        return Posed(judge, setting, because)


class Posed(NamedTuple):
    """A case with the way it is routed.

    Attributes
    ----------
    judge : Judge
        Builds its routes when they are first needed, by itself or by a search.
    setting : Setting
    because : str
        Why this routing was taken.
    """

    judge: Judge
    setting: Setting
    because: str
