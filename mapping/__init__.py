"""Place the ranks of a job and compute what placements cost; loaded on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mapping.cost.metrics import evaluate
    from mapping.distances.cost_model import CostModel
    from mapping.placement.moves import advise, remap_few
    from mapping.placement.objective import parse_objective
    from mapping.placement.place import pareto, place
    from mapping.placement.search import SearchOptions

__all__ = [
    "CostModel",
    "SearchOptions",
    "advise",
    "evaluate",
    "pareto",
    "parse_objective",
    "place",
    "remap_few",
]

_MODULES = {
    "CostModel": "mapping.distances.cost_model",
    "SearchOptions": "mapping.placement.search",
    "advise": "mapping.placement.moves",
    "evaluate": "mapping.cost.metrics",
    "pareto": "mapping.placement.place",
    "parse_objective": "mapping.placement.objective",
    "place": "mapping.placement.place",
    "remap_few": "mapping.placement.moves",
}


def __dir__() -> list[str]:
    """Return the names of the public functions and classes."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'mapping' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value
