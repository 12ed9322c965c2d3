"""Cost of a placement: congestion, hop-bytes, dilation and mapping coefficient on given routes.

If two hosts that communicate are not connected, `DisconnectedAllocation` or `UnreachablePair` is raised.

The most loaded links of placements, with the names of their ends, and differences between placements.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mapping.distances.cost_model import Background, CostModel
from mapping.distances.distances import LINKS, SWITCHES, distances
from mapping.placement.case import PlacementCase
from mapping.placement.place import group_ranks
from mapping.placement.problem import HostsByRank, host_indices, placement_or_hosts
from mapping.placement.search import SearchOptions, search_options
from mapping.routing.network import HostTraffic, host_traffic
from mapping.routing.routes import Routes
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import (
    Bound,
    Evaluation,
    Fabric,
    Floats,
    HasFabric,
    HasPlacement,
    HasProfile,
    Placement,
    Profile,
    format_guid,
)
from registry.model.fabric import End, end_columns, end_name
from registry.model.views import content
from registry.units import code_version


def evaluate(
    fabric: Fabric | HasFabric,
    profile: Profile | HasProfile,
    placement: Placement | HasPlacement | HostsByRank,
    options: SearchOptions | None = None,
    costs: CostModel | None = None,
    *,
    pins: Mapping[int, str | int] | None = None,
    bounds: bool = False,
    **search: Any,
) -> Evaluation:
    """Evaluate a placement on the routes of a fabric.

    Args:
        fabric, profile, placement: What the registry returns is accepted too: a `Snapshot`, a
            `StoredProfile`, a `StoredPlacement`. A placement may also be a list with the host of each rank,
            by name or as an index of ``fabric.names``; the slots of each host are then its ranks.
        options, search: As in `mapping.place`: the objective decides on distances if the cost model names
            none; the rest has no effect.
        costs: Routing, rails, distances and load of other jobs.
        pins: Rank -> the host that it must be on.
        bounds: Also compute lower bounds for every placement on the same allocation.

    Raises:
        InvalidPlacement: The placement has another number of ranks than the profile, a vertex that the fabric
            lacks, or a rank elsewhere than where it is pinned.
        InvalidValue: A table of distances or a background that does not fit, or numbers of hosts that may be
            names.
        UnknownName: An unknown host, routing, rails rule or distance convention.
    """
    begin = time.perf_counter()
    fabric = content(fabric, Fabric, "fabric")
    placement = placement_or_hosts(fabric, placement)
    case = PlacementCase.of(
        fabric, profile, placement.allocation, search_options(options, search), costs, pins, placement
    )
    costs = replace(case.costs, distance=case.distance)
    traffic = host_traffic(case.profile, placement, packet_bytes=costs.packet_bytes)
    if pins:
        pinned = case.pinned_hosts()
        away = np.flatnonzero((pinned >= 0) & (pinned != case.host_indices(placement)))
        if len(away):
            raise InvalidPlacement(f"rank {away[0]} is not on the host that it is pinned to")
    routes = costs.build_routes(fabric, traffic.hosts)
    split = replace(case, options=replace(case.options, consecutive=False))  # as the placement may be
    found = case_bounds(split) if bounds else {}
    total_bytes = float(case.profile.bytes.sum())
    return evaluate_traffic(routes, traffic, total_bytes, costs, bounds=found, begin=begin)


def evaluate_on(
    case: PlacementCase, placement: Placement, bounds: Mapping[str, Bound] | None = None
) -> Evaluation:
    """Evaluate a placement on the routes of a case, which are built once for several placements.

    Args:
        bounds: Bounds to include, such as those of `case_bounds`.

    Raises:
        InvalidPlacement: A host outside the allocation, or another number of ranks.
    """
    traffic = host_traffic(case.profile, placement, packet_bytes=case.costs.packet_bytes)
    outside = np.setdiff1d(traffic.hosts, case.allocation.hosts)
    if len(outside):
        raise InvalidPlacement(f"{case.fabric.names[int(outside[0])]} is not in the allocation")
    index = host_indices(case.allocation, traffic.hosts).astype(np.int64)
    traffic = traffic._replace(
        hosts=case.allocation.hosts, source=index[traffic.source], target=index[traffic.target]
    )
    total_bytes = float(case.profile.bytes.sum())
    costs = replace(case.costs, distance=case.distance)
    return evaluate_traffic(case.routes, traffic, total_bytes, costs, bounds=bounds)


def case_bounds(case: PlacementCase) -> Mapping[str, Bound]:
    """Return certified lower bounds for every placement that a search of the case may find.

    With consecutive ranks these are the orders of the hosts.
    """
    from mapping.cost.bounds.catalog import lower_bounds

    searched = group_ranks(replace(case, present=None)) if case.options.consecutive else case
    background = case.costs.background
    found = lower_bounds(case.routes, searched.profile, searched.allocation, background=background)
    if not case.options.consecutive:
        return found
    of_groups = "; for consecutive ranks on each host"
    return {name: replace(bound, proof=bound.proof + of_groups) for name, bound in found.items()}


def evaluate_traffic(
    routes: Routes,
    traffic: HostTraffic,
    total_bytes: float,
    costs: CostModel | None = None,
    *,
    bounds: Mapping[str, Bound] | None = None,
    begin: float | None = None,
) -> Evaluation:
    """Evaluate host traffic on `routes`, whose hosts are those of the traffic.

    Args:
        total_bytes: Bytes sent, those within hosts included.
        costs: Distances and load of other jobs; the routing is that of `routes`.
        begin: ``time.perf_counter()`` when the work began.
    """
    begin = time.perf_counter() if begin is None else begin
    costs = costs or CostModel()
    loads, hops = routes.load(traffic.source, traffic.target, traffic.bytes)
    fabric, background = routes.fabric, costs.background
    seconds = link_seconds(fabric, loads, background)
    carries = loads > 0
    hop_bytes, messages = float(loads.sum()), traffic.total_messages
    return Evaluation(
        routing=routes.name,
        rails=routes.rails,
        congestion_seconds=float(seconds.max(initial=0.0)),
        network_congestion_seconds=float(seconds[fabric.network_link].max(initial=0.0)),
        hop_bytes=hop_bytes,
        total_bytes=total_bytes,
        average_dilation=hop_bytes / total_bytes if total_bytes > 0 else 0.0,
        max_dilation=float(hops.max(initial=0.0)),
        link_bytes=loads,
        bounds=bounds or {},
        wall_seconds=time.perf_counter() - begin,
        code_version=code_version(),
        mean_congestion_seconds=float(seconds[carries].mean()) if bool(carries.any()) else 0.0,
        total_dilation=float(traffic.rank_pairs @ hops),
        message_dilation=float(traffic.messages @ hops) / messages if messages > 0 else None,
        mapping_coefficient=_mapping_coefficient(routes, traffic, hops, costs),
        distance=costs.distance or LINKS,
        counted="bytes" if costs.packet_bytes is None else f"packets of {costs.packet_bytes:g} bytes",
        background="" if background is None else background.description(fabric),
    )


def link_seconds(fabric: Fabric, link_bytes: Floats, background: Background | None = None) -> Floats:
    """Return float64[m]: the time that each link needs; 0 for links without load of our own.

    Args:
        link_bytes (float64[m]): Our own load.
        background: Load of other jobs: their bytes are added to ours, or their rate is taken off the
            capacity.
    """
    if background is None:
        return np.asarray(link_bytes / fabric.links.capacity, np.float64)
    seconds = (link_bytes + background.link_bytes(fabric)) / background.capacity(fabric)
    return np.where(link_bytes > 0, seconds, 0.0)


def _mapping_coefficient(routes: Routes, traffic: HostTraffic, hops: Floats, costs: CostModel) -> float:
    """Return bytes (or packets) times distance, by the distances of the cost model."""
    weight = traffic.bytes if costs.packet_bytes is None else traffic.packets
    name = costs.distance or LINKS
    if name == LINKS and costs.table is None:
        return float(weight @ hops)
    if name == SWITCHES and costs.table is None:
        return float(weight @ np.maximum(hops - 1.0, 0.0))
    far = distances(name, routes, table=costs.table, one_way=costs.one_way)
    return float(weight @ far.of(traffic.source, traffic.target))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEnd:
    """One end of a link: device, its GUID (a host's: the adapter's), port; and both as a text."""

    name: str
    guid: str
    port: int | None
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLink:
    """A link direction with its load."""

    source: LinkEnd
    target: LinkEnd
    bytes: float
    capacity: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}"


def link(fabric: Fabric, evaluation: Evaluation, row: int) -> LoadedLink:
    """Return a row of ``fabric.links`` with its load, by names."""
    return link_with(fabric, row, float(evaluation.link_bytes[row]))


def link_with(fabric: Fabric, row: int, carried: float) -> LoadedLink:
    """Return a row of ``fabric.links`` with a number of bytes, by names."""
    links = fabric.links
    capacity = float(links.capacity[row])
    return LoadedLink(
        source=_end(fabric, row, "source"),
        target=_end(fabric, row, "target"),
        bytes=carried,
        capacity=capacity,
        seconds=carried / capacity,
    )


def worst_link(fabric: Fabric, evaluation: Evaluation, *, network: bool = False) -> LoadedLink | None:
    """Return the link with the largest load / capacity, of all or of the network; None without load."""
    seconds = evaluation.link_bytes / fabric.links.capacity
    if network:
        seconds = np.where(fabric.network_link, seconds, 0.0)
    if not seconds.any():
        return None
    return link(fabric, evaluation, int(np.argmax(seconds)))


def _end(fabric: Fabric, row: int, end: End) -> LinkEnd:
    vertex, port, adapter = (int(column[row]) for column in end_columns(fabric, end))
    guid = int(fabric.adapters.guid[adapter]) if adapter >= 0 else int(fabric.guid[vertex])
    return LinkEnd(
        name=fabric.names[vertex],
        guid=format_guid(guid),
        port=port if port >= 0 else None,
        text=end_name(fabric, row, end),
    )


class Difference(NamedTuple):
    """A link direction that placements load differently."""

    row: int
    """Row of ``fabric.links``."""
    loads: tuple[LoadedLink, ...]
    """Load of each placement."""
    seconds: float
    """Difference between the largest and the smallest time."""


def differences(
    fabric: Fabric, evaluations: Sequence[Evaluation], *, most: int | None = None
) -> list[Difference]:
    """Return link directions by the difference of their times, largest first; ties by row.

    Args:
        evaluations: Evaluations of at least two placements on this fabric.
        most: Most links to return; default: all that differ.

    Raises:
        InvalidValue: Fewer than two evaluations, or one of another fabric.
    """
    if len(evaluations) < 2:
        raise InvalidValue("differences.evaluations", "at least two are needed")
    if any(len(one.link_bytes) != len(fabric.links) for one in evaluations):
        raise InvalidValue("differences.evaluations", "one is of a fabric with another number of links")
    seconds = np.stack([one.link_bytes for one in evaluations]) / fabric.links.capacity
    spread = seconds.max(axis=0) - seconds.min(axis=0)
    rows = np.argsort(-spread, kind="stable")[: int((spread > 0).sum())][:most]
    return [
        Difference(row, tuple(link(fabric, one, row) for one in evaluations), float(spread[row]))
        for row in rows.tolist()
    ]
