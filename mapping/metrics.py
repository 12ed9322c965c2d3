"""What a placement costs: congestion, hop-bytes and dilation on given routes."""

from __future__ import annotations

import time
from collections.abc import Mapping

from mapping.bounds import lower_bounds
from mapping.routing.catalog import build_routes, choose_routing
from mapping.routing.routes import ALL_CONNECTED, Routes
from mapping.traffic import HostTraffic, host_traffic
from registry.errors import InvalidPlacement
from registry.model import Bound, Evaluation, Fabric, Placement, Profile
from registry.version import code_version

__all__ = ["choose_routing", "evaluate", "evaluation"]


def evaluate(
    fabric: Fabric,
    profile: Profile,
    placement: Placement,
    *,
    routing: str | None = None,
    rails: str = ALL_CONNECTED,
    bounds: bool = False,
) -> Evaluation:
    """Cost of a placement on the routes of a fabric.

    Parameters
    ----------
    routing : str, optional
        ``tables`` or ``shortest-paths``; unless told, tables where they join all hosts.
    rails : str
        How a pair's bytes are split over adapters: ``all-connected`` or ``same-rail``.
    bounds : bool
        Also compute lower bounds for every placement on the same allocation.

    Raises
    ------
    InvalidPlacement
        The placement has another number of ranks than the profile, or a vertex that the fabric has not.
    UnknownName
        A routing or rails rule that there is not.
    DisconnectedAllocation, UnreachablePair
        Two hosts that talk are not connected.
    """
    begin = time.perf_counter()
    name = routing if routing is not None else choose_routing(fabric)[0]
    traffic = host_traffic(profile, placement)
    if len(traffic.hosts) and int(traffic.hosts[-1]) >= len(fabric):
        raise InvalidPlacement(f"vertex {int(traffic.hosts[-1])} is not in the fabric")
    routes = build_routes(name, fabric, traffic.hosts, rails=rails)
    found: Mapping[str, Bound] = {}
    if bounds:
        allocation = placement.allocation
        everywhere = build_routes(name, fabric, allocation.hosts, rails=rails)
        found = lower_bounds(everywhere, profile, allocation)
    return evaluation(routes, traffic, float(profile.bytes.sum()), bounds=found, begin=begin)


def evaluation(
    routes: Routes,
    traffic: HostTraffic,
    total_bytes: float,
    *,
    bounds: Mapping[str, Bound] | None = None,
    begin: float | None = None,
) -> Evaluation:
    """Metrics of host traffic on `routes`, whose hosts are those of the traffic.

    Parameters
    ----------
    total_bytes : float
        Bytes sent, those within hosts too.
    begin : float, optional
        ``time.perf_counter()`` when the work began.

    Raises
    ------
    DisconnectedAllocation, UnreachablePair
    """
    begin = time.perf_counter() if begin is None else begin
    loads, hops = routes.load(traffic.source, traffic.target, traffic.bytes)
    fabric = routes.fabric
    seconds = loads / fabric.links.capacity
    hop_bytes = float(loads.sum())
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
    )
