"""Adaptive routing like UGAL's: a stated share of traffic, unless told a quarter, by way of a random switch.

What share a real router sends so depends on its queues: report the range (``adaptive.range_over_share``).
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from mapping.routing import adaptive
from mapping.routing.routes import ALL_CONNECTED
from registry.model import Fabric


def build(
    fabric: Fabric,
    hosts: ArrayLike,
    *,
    rails: str = ALL_CONNECTED,
    share: float = 0.25,
    minimal: str = "shortest-paths",
) -> adaptive.Adaptive:
    """Routes between `hosts` (vertices); see ``mapping.routing.adaptive.build``."""
    return adaptive.build(fabric, hosts, rails=rails, name="ugal", share=share, minimal=minimal)
