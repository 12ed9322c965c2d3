"""What each page reads from the registry: one object for each page, at most three statements each.

Input: an open registry and the selection in the page's address.
Output: frozen dataclasses.

Objects whose id is computed from their content never change: they are cached (`dashboard.queries.caching`).
Lists are read each time.
"""

from dashboard.queries.caching import CACHED, cached_in_order, cached_placement, cached_snapshot, drawing
from dashboard.queries.fabric import FabricView, fabric_view
from dashboard.queries.traffic import clusters

__all__ = [
    "CACHED",
    "FabricView",
    "clusters",
    "cached_snapshot",
    "drawing",
    "cached_in_order",
    "fabric_view",
    "cached_placement",
]
