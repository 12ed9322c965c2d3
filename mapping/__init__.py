"""Where to put ranks, and what a placement costs: ``place``, ``evaluate`` and more, loaded on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mapping.advice import advise
    from mapping.metrics import evaluate
    from mapping.moving import keep
    from mapping.objective import parse_objective
    from mapping.placing import place
    from mapping.trading import pareto

__all__ = ["advise", "evaluate", "keep", "pareto", "parse_objective", "place"]

_HOMES = {
    "advise": "mapping.advice",
    "evaluate": "mapping.metrics",
    "keep": "mapping.moving",
    "pareto": "mapping.trading",
    "parse_objective": "mapping.objective",
    "place": "mapping.placing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mapping' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
