"""What each page reads from the registry: one object for each page, at most three statements each.

Input: an open registry and what the page's address selects.
Output: frozen dataclasses.

What has an id made from its content never changes, so it is kept (`dashboard.queries.caching`). Lists are
asked for each time.
"""

from dashboard.queries.caching import KEPT, content_kept, drawing, evaluated_in_order, open_kept
from dashboard.queries.fabric import FabricView, fabric_view
from dashboard.queries.lists import clusters

__all__ = [
    "KEPT",
    "FabricView",
    "clusters",
    "content_kept",
    "drawing",
    "evaluated_in_order",
    "fabric_view",
    "open_kept",
]
