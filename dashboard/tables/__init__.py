"""Tables that pages show. Pure functions.

Input: fabrics, records and columns.
Output: small pandas tables.
"""

from dashboard.tables.columns import folded, in_units
from dashboard.tables.placements import (
    IN_ORDER,
    METRICS,
    change,
    communication,
    comparison,
    placement_text,
    ranks_per_host,
)

__all__ = [
    "IN_ORDER",
    "METRICS",
    "change",
    "communication",
    "comparison",
    "folded",
    "in_units",
    "placement_text",
    "ranks_per_host",
]
