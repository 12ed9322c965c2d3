"""Loads of several jobs on one fabric, and the pairs of ranks that load a link.

Routes are built once, for all hosts that any of the jobs uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mapping.distances.cost_model import CostModel
from mapping.routing.host_traffic import HostTraffic, host_traffic
from mapping.routing.routes import Routes
from registry.errors import InvalidPlacement
from registry.model import Bools, Fabric, Floats, Ints, Longs, Placement, Profile
from registry.model.placement import LoadedLinks
from registry.model.views import one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobTraffic:
    """A running job: its traffic and its placement.

    Attributes
    ----------
    job, user : str
    application : str or None
    placement_id : str
        Empty for a placement that was not saved.
    profile : Profile
    placement : Placement
    """

    job: str
    user: str = ""
    application: str | None = None
    placement_id: str = ""
    profile: Profile
    placement: Placement

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Delivered:
    """Load of a job on the links, and its traffic that has no path.

    Attributes
    ----------
    loads : LoadedLinks
    unreachable_pairs : int
        Ordered pairs of ranks that communicate and that the routing does not connect.
    unreachable_bytes : float
        Bytes between them.
    """

    loads: LoadedLinks
    unreachable_pairs: int
    unreachable_bytes: float

    __repr__ = one_line


class Loader:
    """Routes between all hosts of some placements.

    Parameters
    ----------
    fabric : Fabric
    placements : iterable of Placement
        Placements on this fabric.
    costs : CostModel, optional
        Routing and rails.

    Raises
    ------
    UnknownName, InvalidValue
        See `mapping.routing.catalog.build_routes`.
    InvalidPlacement
        A vertex is not in the fabric.
    """

    def __init__(
        self, fabric: Fabric, placements: Iterable[Placement], costs: CostModel | None = None
    ) -> None:
        used = [placement.host_of_rank for placement in placements]
        hosts = np.unique(np.concatenate([np.zeros(0, np.int32), *used]))
        if len(hosts) and int(hosts[-1]) >= len(fabric):
            raise InvalidPlacement(f"vertex {int(hosts[-1])} is not in the fabric")
        self.routes: Routes = (costs or CostModel()).build_routes(fabric, hosts)
        """Routes between these hosts, in ascending order."""

    def load(self, profile: Profile, placement: Placement) -> LoadedLinks:
        """Return the load of a job on the links.

        Raises
        ------
        InvalidPlacement
        DisconnectedAllocation, UnreachablePair
            Two of its hosts that communicate are not connected.
        """
        traffic = host_traffic(profile, placement)
        return LoadedLinks.of(self.routes.link_bytes(*_ends(self.routes, traffic), traffic.bytes))

    def deliver(self, profile: Profile, placement: Placement, gone: Bools | None = None) -> Delivered:
        """Return the load of a job without traffic that cannot be delivered.

        Parameters
        ----------
        gone : bool[ranks], optional
            Ranks that neither send nor receive.

        Raises
        ------
        InvalidPlacement
        """
        traffic = host_traffic(profile if gone is None else without_ranks(profile, gone), placement)
        source, target = _ends(self.routes, traffic)
        connected = self._connected(source, target)
        loads = self.routes.link_bytes(source[connected], target[connected], traffic.bytes[connected])
        return Delivered(
            loads=LoadedLinks.of(loads),
            unreachable_pairs=int(traffic.rank_pairs[~connected].sum()),
            unreachable_bytes=float(traffic.bytes[~connected].sum()),
        )

    def _connected(self, source: Longs, target: Longs) -> Bools:
        if len(self.routes.hosts) == 0 or self.routes.connected:
            return np.ones(len(source), np.bool_)
        group, connected = self._groups
        return connected[group[source], group[target]]

    @cached_property
    def _groups(self) -> tuple[Ints, Bools]:
        """Groups of hosts with equal routes (int32[h]), and which are connected (bool[g, g])."""
        group, hops = self.routes.grouped_hops()
        return group, np.isfinite(hops)


def _ends(routes: Routes, traffic: HostTraffic) -> tuple[Longs, Longs]:
    """Return both hosts of each pair as indices into the hosts of the routes."""
    index = np.searchsorted(routes.hosts, traffic.hosts)
    return index[traffic.source], index[traffic.target]


def without_ranks(profile: Profile, gone: Bools) -> Profile:
    """Return the profile without traffic of some ranks; the number of ranks stays."""
    sender = profile.sender
    left = ~(gone[sender] | gone[profile.partner])
    return replace(
        profile,
        indptr=np.searchsorted(sender[left], np.arange(profile.ranks + 1)),
        partner=profile.partner[left],
        bytes=profile.bytes[left],
        messages=profile.messages[left],
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankPairs:
    """Bytes of ordered pairs of ranks on one link, largest first; equal ones by sender, then receiver.

    Attributes
    ----------
    row : int
        Row of ``fabric.links``.
    sender, receiver : int32[k]
        Ranks.
    bytes : float64[k]
        Bytes of the pair that cross the link; above zero.
    total_bytes : float
        Load of the link by the job, including pairs that are not listed.
    pairs : int
        Pairs that load the link, including those that are not listed.
    """

    row: int
    sender: Ints
    receiver: Ints
    bytes: Floats
    total_bytes: float
    pairs: int

    __repr__ = one_line


def rank_pairs(
    fabric: Fabric,
    profile: Profile,
    placement: Placement,
    row: int,
    costs: CostModel | None = None,
    *,
    most: int | None = None,
) -> RankPairs:
    """Return the pairs of ranks whose traffic crosses a link.

    The load that a host's traffic to another host puts on the link is divided among their pairs of ranks by
    bytes, since routings distinguish hosts, not ranks.

    Parameters
    ----------
    row : int
        Row of ``fabric.links``.
    costs : CostModel, optional
        Routing and rails.
    most : int, optional
        Largest number of pairs to return.

    Raises
    ------
    InvalidValue
        There is no such row.
    InvalidPlacement
        The number of ranks differs from the profile's.
    UnknownName
        The routing or rails rule is unknown.
    DisconnectedAllocation, UnreachablePair
    """
    routes = (costs or CostModel()).build_routes(fabric, np.unique(placement.host_of_rank))
    traffic = host_traffic(profile, placement)
    source, target = _ends(routes, traffic)
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
    """Return for each pair of ranks (float64[e]) the value of its pair of hosts; 0 within a host."""
    host = np.searchsorted(traffic.hosts, placement.host_of_rank)
    source, target = host[profile.sender], host[profile.partner]
    pair = traffic.source * len(traffic.hosts) + traffic.target
    index = np.minimum(np.searchsorted(pair, source * len(traffic.hosts) + target), max(len(pair) - 1, 0))
    return np.where(source != target, np.append(part, 0.0)[index], 0.0)
