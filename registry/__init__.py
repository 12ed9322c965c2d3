"""The data types of Fabric Almanac and the graph database behind them; the common names are loaded on use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from registry.interchange import from_networkx
    from registry.model import Allocation, Fabric, HostOrder, Job, Placement, Profile
    from registry.registry import Registry

__all__ = [
    "Allocation",
    "Fabric",
    "HostOrder",
    "Job",
    "Placement",
    "Profile",
    "Registry",
    "from_networkx",
]

_MODULES = {"Registry": "registry.registry", "from_networkx": "registry.interchange"}


def __dir__() -> list[str]:
    """Return the names of the public functions and classes."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'registry' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES.get(name, "registry.model")), name)
