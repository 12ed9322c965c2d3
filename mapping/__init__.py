"""Where to put ranks, and what a placement costs: ``place``, ``evaluate`` and more, loaded on first use.

Input: a fabric, a profile and an allocation or a placement.
Output: placements, their cost on every link, and certified bounds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mapping.evaluation.metrics import evaluate
    from mapping.placement.moves.advice import advise
    from mapping.placement.moves.moving import keep
    from mapping.placement.problem.objective import parse_objective
    from mapping.placement.search.placing import place
    from mapping.placement.search.trading import pareto

__all__ = ["advise", "evaluate", "keep", "pareto", "parse_objective", "place"]

_HOMES = {
    "advise": "mapping.placement.moves.advice",
    "evaluate": "mapping.evaluation.metrics",
    "keep": "mapping.placement.moves.moving",
    "pareto": "mapping.placement.search.trading",
    "parse_objective": "mapping.placement.problem.objective",
    "place": "mapping.placement.search.placing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mapping' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
