"""Loads of several jobs on one fabric, and the pairs of ranks that load a link.

Routes are built once, for all hosts that any of the jobs uses.

Fragmentation of a job: the groups of neighbouring hosts that it uses, compared with the fewest possible.

Hosts are neighbours if they are attached to the same switches: to one leaf switch, or, with several rails, to
the same set of switches. Hosts that forward (direct networks) are a group each.

Quality of placements over time: control limits, regressions and their causes, medians by application.

The quality is the worst link of a placement divided by its certified bound. It is compared with earlier
placements of the same application. The limit is their median plus three times their scaled median absolute
deviation (Leys et al. 2013, Journal of Experimental Social Psychology 49, 764-766), which one bad placement
does not move.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from mapping.distances.cost_model import CostModel
from mapping.routing.network import HostTraffic, host_traffic
from mapping.routing.routes import Routes
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Bools, Fabric, Floats, Ints, Longs, Placement, Profile
from registry.model.arrays import freeze
from registry.model.placement import LoadedLinks, PlacementSeries
from registry.model.views import one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobTraffic:
    """A running job: its traffic and its placement."""

    job: str
    user: str = ""
    application: str | None = None
    placement_id: str = ""
    """Empty for a placement that was not saved."""
    profile: Profile
    placement: Placement

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Delivered:
    """Load of a job on the links, and its traffic that has no path."""

    loads: LoadedLinks
    unreachable_pairs: int
    """Ordered pairs of ranks that communicate and that the routing does not connect."""
    unreachable_bytes: float
    """Bytes between them."""

    __repr__ = one_line


class Loader:
    """Routes between all hosts of some placements.

    Args:
        placements: Placements on this fabric.
        costs: Routing and rails.

    Raises:
        UnknownName, InvalidValue: See `mapping.routing.catalog.build_routes`.
        InvalidPlacement: A vertex is not in the fabric.
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

        Raises:
            InvalidPlacement
            DisconnectedAllocation, UnreachablePair: Two of its hosts that communicate are not connected.
        """
        traffic = host_traffic(profile, placement)
        return LoadedLinks.of(self.routes.link_bytes(*_ends(self.routes, traffic), traffic.bytes))

    def deliver(self, profile: Profile, placement: Placement, gone: Bools | None = None) -> Delivered:
        """Return the load of a job without traffic that cannot be delivered.

        Args:
            gone (bool[ranks]): Ranks that neither send nor receive.

        Raises:
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
    """Bytes of ordered pairs of ranks on one link, largest first; equal ones by sender, then receiver."""

    row: int
    """Row of ``fabric.links``."""
    sender: Ints
    receiver: Ints
    """int32[k]: Ranks."""
    bytes: Floats
    """float64[k]: Bytes of the pair that cross the link; above zero."""
    total_bytes: float
    """Load of the link by the job, including pairs that are not listed."""
    pairs: int
    """Pairs that load the link, including those that are not listed."""

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

    Args:
        row: Row of ``fabric.links``.
        costs: Routing and rails.
        most: Largest number of pairs to return.

    Raises:
        InvalidValue: There is no such row.
        InvalidPlacement: The number of ranks differs from the profile's.
        UnknownName: The routing or rails rule is unknown.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragmentation:
    """Groups of neighbouring hosts that a job uses."""

    groups: int
    """Groups in which the job has hosts."""
    fewest: int
    """Groups that its number of hosts would need on an empty fabric."""

    @property
    def times(self) -> float:
        """Groups divided by the fewest; 1 is the best possible."""
        return self.groups / self.fewest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbours:
    """The hosts of a fabric by the switches that they are attached to; made once per fabric."""

    group: Ints
    """int32[n]: Group of each vertex, numbered by the first host of each; -1 for switches."""
    room: Longs
    """int64[g]: Total hosts of the 1, 2, ... largest groups."""

    __repr__ = one_line

    @classmethod
    def of(cls, fabric: Fabric) -> Self:
        """Return the hosts of a fabric in groups."""
        links = fabric.links
        host = links.source
        attached = (fabric.kind[host] == 0) & ~fabric.forwards[host] & fabric.forwards[links.target]
        pairs = np.unique(np.stack((host[attached], links.target[attached]), axis=1), axis=0)
        first = np.searchsorted(pairs[:, 0], np.arange(len(fabric) + 1))
        number: dict[tuple[int, ...], int] = {}
        group = np.full(len(fabric), -1, np.int32)
        for vertex in fabric.hosts.tolist():
            switches = tuple(pairs[first[vertex] : first[vertex + 1], 1].tolist())
            group[vertex] = number.setdefault(switches or (-1, vertex), len(number))
        sizes = np.bincount(group[group >= 0], minlength=len(number))
        return cls(group=group, room=np.cumsum(np.sort(sizes)[::-1]))

    def fragmentation(self, hosts: ArrayLike) -> Fragmentation:
        """Return the fragmentation of a job on these hosts (vertices, each counted once).

        Raises:
            InvalidValue: There are no hosts, or a vertex is not a host.
        """
        vertices = np.unique(np.asarray(hosts, np.int64))
        if not len(vertices):
            raise InvalidValue("fragmentation.hosts", "must contain at least one host")
        if int(vertices[0]) < 0 or int(vertices[-1]) >= len(self.group):
            raise InvalidValue("fragmentation.hosts", f"must be from 0 to {len(self.group) - 1}")
        groups = np.unique(self.group[vertices])
        if int(groups[0]) < 0:
            raise InvalidValue("fragmentation.hosts", "must not contain a switch")
        return Fragmentation(groups=len(groups), fewest=int(np.searchsorted(self.room, len(vertices))) + 1)


WINDOW = 20
"""Largest number of earlier placements that one is compared with."""
NEEDED = 5
"""Smallest number of earlier placements for a limit."""
DEVIATIONS = 3.0
CONSISTENT = 1.4826
"""Median absolute deviations per standard deviation of a normal distribution."""
WORSE = 1.05
"""A ratio below this multiple of the median is no regression, however narrow the limits are."""

FABRIC, ROUTES, PROFILE, STRATEGY, HOSTS, ORDER, TRAFFIC, PROGRAM = CAUSES = (
    *("fabric", "routes", "profile", "strategy", "hosts", "order of ranks", "other jobs", "program"),
)
"""Possible changes since the last good placement."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quality:
    """Quality of the placements of a series, one row each (n rows)."""

    ratio: Floats
    """float64[n]: Worst link divided by its certified bound; NaN if either is unknown."""
    centre: Floats
    limit: Floats
    """float64[n]: Median of the earlier placements, and the upper limit; NaN if there are fewer than
    `NEEDED`."""
    regression: Bools
    """bool[n]."""
    last_good: Longs
    """int64[n]: Row of the last earlier placement without a regression; -1 if there is none."""

    __repr__ = one_line

    def __post_init__(self) -> None:
        n = len(self.ratio)
        for name in ("ratio", "centre", "limit"):
            freeze(self, name, np.float64, n)
        freeze(self, "regression", np.bool_, n)
        freeze(self, "last_good", np.int64, n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """A placement that is worse than the earlier ones."""

    row: int
    """Row of the series."""
    id: str
    recorded_at: datetime
    """UTC."""
    cluster: str
    application: str
    profile_name: str
    role: str
    job: str
    ranks: int
    ratio: float
    centre: float
    limit: float
    """As in `Quality`."""
    last_good: str
    """Id of the last earlier placement without a regression."""
    changed: tuple[str, ...]
    """Differences between the two, from `CAUSES`."""


def judge(series: PlacementSeries) -> Quality:
    """Return the ratios, control limits and regressions of a series.

    Placements are compared if they have the same cluster, application, profile name (so a new recording of
    the profile counts), number of ranks and role, and both have, or lack, other jobs' traffic.
    """
    n = len(series)
    bound = series.bound_congestion_seconds
    known = np.isfinite(series.congestion_seconds) & (bound > 0)
    known &= np.asarray([bool(profile) for profile in series.profile], bool)
    ratio = np.where(known, series.congestion_seconds / np.where(known, bound, 1.0), np.nan)
    rows = np.flatnonzero(known)
    group = _groups(series)[rows]
    order = np.argsort(group, kind="stable")
    rows, group = rows[order], group[order]
    position = np.arange(len(rows))
    first = np.searchsorted(group, group)
    centre, limit = _limits(ratio[rows], position - first)
    worse = (ratio[rows] > limit) & (ratio[rows] >= WORSE * centre)
    good = np.maximum.accumulate(np.where(worse, -1, position)) if len(rows) else position
    before = np.append(-1, good[:-1])[: len(rows)]
    last_good = np.where(before >= first, rows[before], -1)
    return Quality(
        ratio=ratio,
        centre=_scatter(n, rows, centre, np.nan),
        limit=_scatter(n, rows, np.maximum(limit, WORSE * centre), np.nan),
        regression=_scatter(n, rows, worse, False),
        last_good=_scatter(n, rows, last_good, -1),
    )


def regressions(series: PlacementSeries, quality: Quality | None = None) -> tuple[Regression, ...]:
    """Return the placements that are worse than earlier ones, newest first.

    Args:
        quality: Result of `judge`, if available.
    """
    judged = judge(series) if quality is None else quality
    found = np.flatnonzero(judged.regression)[::-1].tolist()
    return tuple(_regression(series, judged, row) for row in found)


def changed(series: PlacementSeries, row: int, other: int) -> tuple[str, ...]:
    """Return the differences between two placements of a series, from `CAUSES` in their order.

    The order of ranks is compared only if the hosts are the same and both orders are known.
    """

    def differs(*columns: Sequence[str]) -> bool:
        return any(column[row] != column[other] for column in columns)

    same_hosts = not differs(series.allocation)
    orders_known = bool(series.order[row] and series.order[other])
    different = {
        FABRIC: differs(series.snapshot),
        ROUTES: differs(series.tables, series.routing),
        PROFILE: differs(series.profile),
        STRATEGY: differs(series.strategy),
        HOSTS: not same_hosts,
        ORDER: same_hosts and orders_known and differs(series.order),
        TRAFFIC: differs(series.background),
        PROGRAM: differs(series.code_version),
    }
    return tuple(cause for cause in CAUSES if different[cause])


def _regression(series: PlacementSeries, judged: Quality, row: int) -> Regression:
    """Return the regression at a row of the series."""
    good = int(judged.last_good[row])
    time: datetime = series.recorded_at[row].astype("datetime64[us]").item()
    texts = ("id", "cluster", "application", "profile_name", "role", "job")
    known: dict[str, Any] = {name: getattr(series, name)[row] for name in texts}
    known |= {name: float(getattr(judged, name)[row]) for name in ("ratio", "centre", "limit")}
    return Regression(
        row=row,
        recorded_at=time.replace(tzinfo=UTC),
        ranks=int(series.ranks[row]),
        last_good=series.id[good],
        changed=changed(series, row, good),
        **known,
    )


def _groups(series: PlacementSeries) -> Longs:
    """Return the same number (int64[n]) for placements that are compared with each other."""
    number: dict[tuple[object, ...], int] = {}
    shared = (bool(text) for text in series.background)
    texts = series.cluster, series.application, series.profile_name, series.role
    keys = zip(*texts, series.ranks.tolist(), shared, strict=True)
    return np.asarray([number.setdefault(key, len(number)) for key in keys], np.int64)


def _limits(ratio: Floats, earlier: Longs) -> tuple[Floats, Floats]:
    """Return the median of the earlier ratios and the upper control limit; NaN if there are too few.

    Args:
        ratio (float64[n]): Ratios by group, each group in order of time.
        earlier (int64[n]): Number of earlier entries in the same group.
    """
    back = np.arange(1, WINDOW + 1)
    known = earlier[:, None] >= back
    source = np.maximum(np.arange(len(ratio))[:, None] - back, 0)
    window = np.where(known, ratio[source] if len(ratio) else 0.0, np.nan)
    count = np.minimum(earlier, WINDOW)
    centre = _median(window, count)
    deviation = _median(np.abs(window - centre[:, None]), count)
    few = count < NEEDED
    limit = centre + DEVIATIONS * CONSISTENT * deviation
    return np.where(few, np.nan, centre), np.where(few, np.nan, limit)


def _median(window: Floats, count: Longs) -> Floats:
    """Return the median (float64[n]) of the first `count` sorted values of each row, NaN sorted last."""
    ordered = np.sort(window, axis=1)
    middle = np.stack([np.maximum(count - 1, 0) // 2, count // 2], axis=1)
    return np.asarray(np.take_along_axis(ordered, np.minimum(middle, WINDOW - 1), axis=1).mean(axis=1))


def _scatter(n: int, rows: Longs, values: np.ndarray, default: object) -> np.ndarray:
    """Return the values at their rows of the series, and the default elsewhere."""
    whole = np.full(n, default, values.dtype)
    whole[rows] = values
    return whole


class ApplicationQuality(NamedTuple):
    """Medians of an application's evaluated placements on a cluster; NaN if unknown."""

    cluster: str
    application: str
    placements: int
    over_bound: float
    """Worst link divided by its certified lower bound; 1 is the best possible."""
    over_in_order: float
    """Worst link divided by that of the same ranks in order; below 1 is better."""
    congestion_seconds: float
    """Time of the worst link."""


def by_application(series: PlacementSeries) -> tuple[ApplicationQuality, ...]:
    """Return the quality of each application on each cluster, by application and cluster."""
    worst = series.congestion_seconds
    with np.errstate(divide="ignore", invalid="ignore"):
        over_bound = worst / series.bound_congestion_seconds
        over_in_order = worst / series.in_order_congestion_seconds
    rows: dict[tuple[str, str], list[int]] = {}
    for row in np.flatnonzero(np.isfinite(worst)).tolist():
        rows.setdefault((series.application[row], series.cluster[row]), []).append(row)
    return tuple(
        ApplicationQuality(
            cluster=cluster,
            application=application,
            placements=len(mine),
            over_bound=_known_median(over_bound[mine]),
            over_in_order=_known_median(over_in_order[mine]),
            congestion_seconds=_known_median(worst[mine]),
        )
        for (application, cluster), mine in sorted(rows.items())
    )


def _known_median(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")
