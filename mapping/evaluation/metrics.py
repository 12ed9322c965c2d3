"""Cost of a placement: congestion, hop-bytes, dilation and mapping coefficient on given routes.

If two hosts that communicate are not connected, `DisconnectedAllocation` or `UnreachablePair` is raised.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mapping.distances.background import Background
from mapping.distances.cost_model import CostModel
from mapping.distances.distances import LINKS, SWITCHES, distances
from mapping.evaluation.bounds.catalog import lower_bounds
from mapping.placement.case import PlacementCase
from mapping.placement.problem.problem import host_indices
from mapping.routing.host_traffic import HostTraffic, host_traffic
from mapping.routing.routes import Routes
from registry.errors import InvalidPlacement
from registry.model import Bound, Evaluation, Fabric, Floats, Placement, Profile
from registry.version import code_version


def evaluate(
    fabric: Fabric,
    profile: Profile,
    placement: Placement,
    costs: CostModel | None = None,
    *,
    bounds: bool = False,
) -> Evaluation:
    """Evaluate a placement on the routes of a fabric.

    Parameters
    ----------
    costs : CostModel, optional
        Routing, rails, distances and load of other jobs.
    bounds : bool
        Also compute lower bounds for every placement on the same allocation.

    Raises
    ------
    InvalidPlacement
        The placement has another number of ranks than the profile, or a vertex that the fabric lacks.
    InvalidValue
        A table of distances or a background that does not fit.
    UnknownName
        An unknown routing, rails rule or distance convention.
    """
    begin = time.perf_counter()
    costs = costs or CostModel()
    traffic = host_traffic(profile, placement, packet_bytes=costs.packet_bytes)
    if len(traffic.hosts) and int(traffic.hosts[-1]) >= len(fabric):
        raise InvalidPlacement(f"vertex {int(traffic.hosts[-1])} is not in the fabric")
    routes = costs.build_routes(fabric, traffic.hosts)
    found: Mapping[str, Bound] = {}
    if bounds:
        case = PlacementCase(fabric=fabric, profile=profile, allocation=placement.allocation, costs=costs)
        found = case_bounds(case)
    return evaluate_traffic(routes, traffic, float(profile.bytes.sum()), costs, bounds=found, begin=begin)


def evaluate_on(
    case: PlacementCase, placement: Placement, bounds: Mapping[str, Bound] | None = None
) -> Evaluation:
    """Evaluate a placement on the routes of a case, which are built once for several placements.

    Parameters
    ----------
    bounds : mapping of str to Bound, optional
        Bounds to include, such as those of `case_bounds`.

    Raises
    ------
    InvalidPlacement
        A host outside the allocation, or another number of ranks.
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
    """Return certified lower bounds for every placement of a case."""
    return lower_bounds(case.routes, case.profile, case.allocation, background=case.costs.background)


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

    Parameters
    ----------
    total_bytes : float
        Bytes sent, those within hosts included.
    costs : CostModel, optional
        Distances and load of other jobs; the routing is that of `routes`.
    begin : float, optional
        ``time.perf_counter()`` when the work began.
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

    Parameters
    ----------
    link_bytes : float64[m]
        Our own load.
    background : Background, optional
        Load of other jobs: their bytes are added to ours, or their rate is taken off the capacity.
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
