"""Place the ranks of a job and compute what placements cost; loaded on first use.

Input: a fabric, a profile and an allocation or a placement.
Output: placements, their cost on every link, and certified bounds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mapping.distances.cost_model import CostModel
    from mapping.evaluation.metrics import evaluate
    from mapping.placement.moves.advice import advise
    from mapping.placement.moves.remapping import remap_few
    from mapping.placement.problem.objective import parse_objective
    from mapping.placement.search.options import SearchOptions
    from mapping.placement.search.pareto import pareto
    from mapping.placement.search.placing import place

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
    "SearchOptions": "mapping.placement.search.options",
    "advise": "mapping.placement.moves.advice",
    "evaluate": "mapping.evaluation.metrics",
    "pareto": "mapping.placement.search.pareto",
    "parse_objective": "mapping.placement.problem.objective",
    "place": "mapping.placement.search.placing",
    "remap_few": "mapping.placement.moves.remapping",
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
