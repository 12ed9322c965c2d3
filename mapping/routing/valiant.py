"""Valiant's routing: a stated share of traffic, unless told all, by way of a random switch."""

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
    share: float = 1.0,
    minimal: str = "shortest-paths",
) -> adaptive.Adaptive:
    """Routes between `hosts` (vertices); see ``mapping.routing.adaptive.build``."""
    return adaptive.build(fabric, hosts, rails=rails, name="valiant", share=share, minimal=minimal)
