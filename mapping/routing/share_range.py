"""Congestion of a placement under adaptive routing, for every share of non-minimal traffic."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mapping.routing import adaptive
from mapping.routing.host_traffic import host_traffic
from mapping.routing.routes import ALL_CONNECTED
from registry.errors import InvalidValue
from registry.model import Fabric, Floats, Placement, Profile


class ShareRange(NamedTuple):
    """Congestion of one placement as a function of the share of non-minimal traffic.

    The load of a link is linear in the share, so the maximum over links is convex: it is largest at one end
    of the range and smallest where two links have equal load, or at an end. Both are exact.

    Attributes
    ----------
    shares : float64[n]
        The requested shares.
    congestion_seconds, network_congestion_seconds : float64[n]
        Congestion at each of these shares.
    least_seconds, least_share : float
        Least congestion over all shares from 0 to 1, and the smallest share that has it.
    most_seconds, most_share : float
        Largest congestion over all shares, and its share.
    least_network_seconds, least_network_share, most_network_seconds, most_network_share : float
        The same for links between vertices that forward.
    """

    shares: Floats
    congestion_seconds: Floats
    network_congestion_seconds: Floats
    least_seconds: float
    least_share: float
    most_seconds: float
    most_share: float
    least_network_seconds: float
    least_network_share: float
    most_network_seconds: float
    most_network_share: float


def range_over_share(
    fabric: Fabric,
    profile: Profile,
    placement: Placement,
    shares: ArrayLike = (0.0, 0.25, 0.5, 0.75, 1.0),
    *,
    minimal: str = adaptive.PATHS,
    rails: str = ALL_CONNECTED,
) -> ShareRange:
    """Return the congestion of a placement under adaptive routing for all shares of non-minimal traffic.

    Parameters
    ----------
    shares : float[n]
        Shares, each 0 to 1, at which congestion is returned.
    minimal : str
        Routing of the minimal part: ``shortest-paths`` or ``tables``.

    Raises
    ------
    InvalidPlacement, InvalidValue, UnknownName, DisconnectedAllocation, UnreachablePair
    """
    wanted = np.array(shares, np.float64).reshape(-1)
    if not bool(((wanted >= 0) & (wanted <= 1)).all()):
        raise InvalidValue("range_over_share.shares", "must be from 0 to 1")
    traffic = host_traffic(profile, placement)
    routes = adaptive.ugal(fabric, traffic.hosts, rails=rails, share=0.0, minimal=minimal)
    parts = routes.parts(traffic.source, traffic.target, traffic.bytes)
    ends = np.stack([part.link_bytes / fabric.links.capacity for part in parts])
    seconds = (1 - wanted)[:, None] * ends[0] + wanted[:, None] * ends[1]
    network = fabric.network_link
    return ShareRange(
        wanted,
        seconds.max(axis=1, initial=0.0),
        seconds[:, network].max(axis=1, initial=0.0),
        *_extremes(ends),
        *_extremes(ends[:, network]),
    )


def _extremes(ends: Floats) -> tuple[float, float, float, float]:
    """Return least and most of the worst link, each with its share.

    Parameters
    ----------
    ends : float64[2, m]
        Seconds of each link at the shares 0 and 1.
    """
    worst = ends.max(axis=1, initial=0.0)
    most = int(worst[1] > worst[0])
    share, least = 0.0, float(worst[0])
    # Walk the upper envelope from the left: follow the worst line (of equal ones the steepest) until a
    # steeper one crosses it.
    line = int(np.lexsort((ends[1], ends[0]))[-1]) if ends.shape[1] else -1
    while line >= 0 and share < 1.0:
        slope = ends[1] - ends[0]
        if slope[line] >= 0:
            break
        value = ends[0] + share * slope
        steeper = np.flatnonzero(slope > slope[line])
        reach = share + (value[line] - value[steeper]) / (slope[steeper] - slope[line])
        until = min(float(reach.min(initial=1.0)), 1.0)
        least, share = float(ends[0, line] + until * slope[line]), until
        if until < 1.0:
            crossing = steeper[np.isclose(reach, until, rtol=1e-12, atol=1e-15)]
            line = int(crossing[np.argmax(slope[crossing])])
    return least, share, float(worst[most]), float(most)
