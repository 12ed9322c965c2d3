"""What each page asks of the registry: one object a view, at most three statements each.

What has an id made from its content never changes, so it is kept (`dashboard.queries.kept`). Lists are
asked for each time.
"""

from dashboard.queries.fabric import FabricView, fabric_view
from dashboard.queries.kept import KEPT, content_kept, drawing, evaluated_in_order, open_kept
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
