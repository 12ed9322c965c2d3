"""The functions of `mapping` on data from the registry, loaded on first use.

Input: requests that name profiles, jobs and clusters, and an open registry.
Output: reports; placements and circuit plans saved in the registry.

The only package of `mapping` that uses the database, through `registry.registry.Registry`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mapping.service.advising import Advised, advise_all
    from mapping.service.live import Live, Unloaded, imagine, pairs_on, traffic, traffic_of, traffics
    from mapping.service.naming import change_of, link_of
    from mapping.service.placing import evaluate, pareto, place, placement_on, resolve, save, subject_of
    from mapping.service.reconfiguring import (
        OnSwitch,
        machine_of,
        next_circuits,
        on_switch,
        save_circuits,
        save_next_circuits,
        topology_of,
    )
    from mapping.service.request import PlacementRequest
    from mapping.service.simulations import (
        SimulationCase,
        SimulationReport,
        SimulationRequest,
        simulate_placements,
        simulation_case,
    )

__all__ = [
    "Advised",
    "Live",
    "OnSwitch",
    "PlacementRequest",
    "SimulationCase",
    "SimulationReport",
    "SimulationRequest",
    "Unloaded",
    "advise_all",
    "change_of",
    "evaluate",
    "imagine",
    "link_of",
    "machine_of",
    "next_circuits",
    "on_switch",
    "pairs_on",
    "pareto",
    "place",
    "placement_on",
    "resolve",
    "save",
    "save_circuits",
    "save_next_circuits",
    "simulate_placements",
    "simulation_case",
    "subject_of",
    "topology_of",
    "traffic",
    "traffic_of",
    "traffics",
]

_MODULES = {
    **dict.fromkeys(
        (
            "Advised",
            "advise_all",
        ),
        "mapping.service.advising",
    ),
    **dict.fromkeys(
        (
            "Live",
            "Unloaded",
            "imagine",
            "pairs_on",
            "traffic",
            "traffic_of",
            "traffics",
        ),
        "mapping.service.live",
    ),
    **dict.fromkeys(
        (
            "change_of",
            "link_of",
        ),
        "mapping.service.naming",
    ),
    **dict.fromkeys(
        (
            "evaluate",
            "pareto",
            "place",
            "placement_on",
            "resolve",
            "save",
            "subject_of",
        ),
        "mapping.service.placing",
    ),
    **dict.fromkeys(
        (
            "OnSwitch",
            "machine_of",
            "next_circuits",
            "on_switch",
            "save_circuits",
            "save_next_circuits",
            "topology_of",
        ),
        "mapping.service.reconfiguring",
    ),
    **dict.fromkeys(("PlacementRequest",), "mapping.service.request"),
    **dict.fromkeys(
        (
            "SimulationCase",
            "SimulationReport",
            "SimulationRequest",
            "simulate_placements",
            "simulation_case",
        ),
        "mapping.service.simulations",
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'mapping.service' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value
