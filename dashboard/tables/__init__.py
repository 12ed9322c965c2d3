"""What pages show as tables, pure functions: costs and placements here, the rest a file a subject."""

from dashboard.tables.placements import (
    IN_ORDER,
    METRICS,
    change,
    communication,
    comparison,
    folded,
    in_units,
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
