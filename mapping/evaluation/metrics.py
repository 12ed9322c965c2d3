"""What a placement costs: congestion, hop-bytes, dilation and mapping coefficient on given routes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mapping.distances.background import Background
from mapping.distances.distance_tables import DistanceTable
from mapping.distances.distances import LINKS, SWITCHES, distances
from mapping.evaluation.bounds import lower_bounds
from mapping.routing.catalog import build_routes, choose_routing
from mapping.routing.routes import ALL_CONNECTED, Routes
from mapping.routing.traffic import HostTraffic, host_traffic
from registry.errors import InvalidPlacement
from registry.model import Bound, Evaluation, Fabric, Floats, Placement, Profile
from registry.version import code_version

__all__ = ["Coefficient", "choose_routing", "evaluate", "evaluation"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coefficient:
    """How the mapping coefficient counts (Orduña, Silla and Duato 2004, section 4.1).

    Attributes
    ----------
    distance : str
        Convention, one of ``mapping.distances.distances.CONVENTIONS``.
    table : DistanceTable or None
        For the convention ``table``.
    one_way : bool
        The table may differ by direction.
    packet_bytes : float or None
        Count packets of this size instead of bytes (``mapping.routing.traffic.packets``).
    """

    distance: str = LINKS
    table: DistanceTable | None = None
    one_way: bool = False
    packet_bytes: float | None = None


def evaluate(
    fabric: Fabric,
    profile: Profile,
    placement: Placement,
    *,
    routing: str | None = None,
    rails: str = ALL_CONNECTED,
    bounds: bool = False,
    coefficient: Coefficient | None = None,
    background: Background | None = None,
) -> Evaluation:
    """Cost of a placement on the routes of a fabric.

    Parameters
    ----------
    routing : str, optional
        A routing with its options (``mapping.routing.catalog``), such as ``tables``, ``shortest-paths``
        or ``up-down:root=n6``; unless told, tables where they join all hosts.
    rails : str
        How a pair's bytes are split over adapters: ``all-connected`` or ``same-rail``.
    bounds : bool
        Also compute lower bounds for every placement on the same allocation.
    coefficient : Coefficient, optional
        Unless told, bytes times links crossed.
    background : Background, optional
        Other jobs' load.

    Raises
    ------
    InvalidPlacement
        The placement has another number of ranks than the profile, or a vertex that the fabric has not.
    InvalidValue
        A table of distances or a background that does not fit.
    UnknownName
        A routing, rails rule or distance convention that there is not.
    DisconnectedAllocation, UnreachablePair
        Two hosts that talk are not connected.
    """
    begin = time.perf_counter()
    name = routing if routing is not None else choose_routing(fabric)[0]
    counting = coefficient or Coefficient()
    traffic = host_traffic(profile, placement, packet_bytes=counting.packet_bytes)
    if len(traffic.hosts) and int(traffic.hosts[-1]) >= len(fabric):
        raise InvalidPlacement(f"vertex {int(traffic.hosts[-1])} is not in the fabric")
    routes = build_routes(name, fabric, traffic.hosts, rails=rails)
    found: Mapping[str, Bound] = {}
    if bounds:
        allocation = placement.allocation
        everywhere = build_routes(name, fabric, allocation.hosts, rails=rails)
        found = lower_bounds(everywhere, profile, allocation, background=background)
    return evaluation(
        routes,
        traffic,
        float(profile.bytes.sum()),
        bounds=found,
        begin=begin,
        coefficient=counting,
        background=background,
    )


def evaluation(
    routes: Routes,
    traffic: HostTraffic,
    total_bytes: float,
    *,
    bounds: Mapping[str, Bound] | None = None,
    begin: float | None = None,
    coefficient: Coefficient | None = None,
    background: Background | None = None,
) -> Evaluation:
    """Metrics of host traffic on `routes`, whose hosts are those of the traffic.

    Parameters
    ----------
    total_bytes : float
        Bytes sent, those within hosts too.
    begin : float, optional
        ``time.perf_counter()`` when the work began.
    coefficient, background
        As in `evaluate`.

    Raises
    ------
    DisconnectedAllocation, UnreachablePair
    """
    begin = time.perf_counter() if begin is None else begin
    counting = coefficient or Coefficient()
    loads, hops = routes.load(traffic.source, traffic.target, traffic.bytes)
    fabric = routes.fabric
    seconds = link_seconds(fabric, loads, background)
    carries = loads > 0
    hop_bytes, talked = float(loads.sum()), traffic.total_messages
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
        message_dilation=float(traffic.messages @ hops) / talked if talked > 0 else None,
        mapping_coefficient=_mapping_coefficient(routes, traffic, hops, counting),
        distance=counting.distance,
        counted=_counted(counting),
        background="" if background is None else background.told(fabric),
    )


def link_seconds(fabric: Fabric, link_bytes: Floats, background: Background | None = None) -> Floats:
    """float64[m]: time that each link needs for what it carries; 0 where it carries nothing of ours.

    Parameters
    ----------
    link_bytes : float64[m]
        Our own load.
    background : Background, optional
        Others' bytes are added to ours, or the capacity that they take is gone.
    """
    if background is None:
        return np.asarray(link_bytes / fabric.links.capacity, np.float64)
    seconds = (link_bytes + background.link_bytes(fabric)) / background.capacity(fabric)
    return np.where(link_bytes > 0, seconds, 0.0)


def _mapping_coefficient(routes: Routes, traffic: HostTraffic, hops: Floats, counting: Coefficient) -> float:
    weight = traffic.bytes if counting.packet_bytes is None else traffic.packets
    if counting.distance == LINKS and counting.table is None:
        return float(weight @ hops)
    if counting.distance == SWITCHES and counting.table is None:
        return float(weight @ np.maximum(hops - 1.0, 0.0))
    far = distances(counting.distance, routes, table=counting.table, one_way=counting.one_way)
    return float(weight @ far.of(traffic.source, traffic.target))


def _counted(counting: Coefficient) -> str:
    size = counting.packet_bytes
    return "bytes" if size is None else f"packets of {size:g} bytes"
