"""Where to put ranks, and what a placement costs: ``place``, ``evaluate`` and more, loaded on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mapping.evaluation.metrics import evaluate
    from mapping.model.objective import parse_objective
    from mapping.moves.advice import advise
    from mapping.moves.moving import keep
    from mapping.search.placing import place
    from mapping.search.trading import pareto

__all__ = ["advise", "evaluate", "keep", "pareto", "parse_objective", "place"]

_HOMES = {
    "advise": "mapping.moves.advice",
    "evaluate": "mapping.evaluation.metrics",
    "keep": "mapping.moves.moving",
    "pareto": "mapping.search.trading",
    "parse_objective": "mapping.model.objective",
    "place": "mapping.search.placing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mapping' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
