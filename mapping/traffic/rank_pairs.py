"""Which pairs of ranks of a job load a link, and by how much: exact on every routing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mapping.routing.catalog import build_routes, choose_routing
from mapping.routing.routes import ALL_CONNECTED, Routes
from mapping.routing.traffic import HostTraffic, host_traffic
from registry.model import Fabric, Floats, Ints, Placement, Profile


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankPairs:
    """What ordered pairs of ranks put on one link, the most first; equals by sender, then receiver.

    Attributes
    ----------
    row : int
        Of ``fabric.links``.
    sender, receiver : int32[k]
        Ranks.
    bytes : float64[k]
        Of the pair's bytes those that cross the link; above zero.
    total_bytes : float
        Of all pairs of the job, also of those that were cut off: the job's load of the link.
    pairs : int
        That load the link, also those that were cut off.
    """

    row: int
    sender: Ints
    receiver: Ints
    bytes: Floats
    total_bytes: float
    pairs: int


def rank_pairs(
    fabric: Fabric,
    profile: Profile,
    placement: Placement,
    row: int,
    *,
    routing: str | None = None,
    rails: str = ALL_CONNECTED,
    most: int | None = None,
) -> RankPairs:
    """The pairs of ranks whose traffic is on a link.

    Parameters
    ----------
    row : int
        Of ``fabric.links``.
    routing : str, optional
        As in `mapping.evaluate`.
    rails : str
    most : int, optional
        Return no more pairs.

    Raises
    ------
    InvalidValue
        A row that there is not.
    InvalidPlacement
        Another number of ranks than the profile.
    UnknownName
        A routing or rails rule that there is not.
    DisconnectedAllocation, UnreachablePair
    """
    routes = build_routes(
        routing or choose_routing(fabric)[0], fabric, np.unique(placement.host_of_rank), rails=rails
    )
    return pairs_on_link(routes, profile, placement, row, most=most)


def pairs_on_link(
    routes: Routes, profile: Profile, placement: Placement, row: int, *, most: int | None = None
) -> RankPairs:
    """`rank_pairs` on routes between hosts, of which the placement's are some.

    Ranks of a host share what its traffic to another host puts on the link, each pair by its bytes: routings
    tell hosts apart, not ranks.

    Raises
    ------
    InvalidValue, InvalidPlacement, DisconnectedAllocation, UnreachablePair
    """
    traffic = host_traffic(profile, placement)
    index = np.full(len(routes.fabric), -1, np.int64)
    index[routes.hosts] = np.arange(len(routes.hosts))
    source, target = index[traffic.hosts][traffic.source], index[traffic.hosts][traffic.target]
    loads = routes.link_bytes(source, target, traffic.bytes)
    on_link = routes.on_link(source, target, traffic.bytes, row)
    part = np.divide(on_link, traffic.bytes, out=np.zeros(len(on_link)), where=traffic.bytes > 0)
    carried = profile.bytes * _part_of_rank_pair(profile, placement, traffic, part)
    rows = np.flatnonzero(carried)
    shown = rows[np.argsort(-carried[rows], kind="stable")[:most]]
    return RankPairs(
        row=row,
        sender=profile.sender[shown],
        receiver=profile.partner[shown],
        bytes=carried[shown],
        total_bytes=float(loads[row]),
        pairs=len(rows),
    )


def _part_of_rank_pair(profile: Profile, placement: Placement, traffic: HostTraffic, part: Floats) -> Floats:
    """float64[e]: by pair of ranks, what is known by pair of hosts; 0 within a host."""
    host = np.searchsorted(traffic.hosts, placement.host_of_rank)
    source, target = host[profile.sender], host[profile.partner]
    pair = traffic.source * len(traffic.hosts) + traffic.target
    at = np.minimum(np.searchsorted(pair, source * len(traffic.hosts) + target), max(len(pair) - 1, 0))
    return np.where(source != target, np.append(part, 0.0)[at], 0.0)
