"""Where to put ranks, and what a placement costs: ``place`` and ``evaluate``, loaded on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mapping.metrics import evaluate
    from mapping.placing import place

__all__ = ["evaluate", "place"]

_HOMES = {"evaluate": "mapping.metrics", "place": "mapping.placing"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mapping' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
