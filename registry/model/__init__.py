"""Data types that all packages share: frozen dataclasses over read-only numpy arrays; loaded on use.

A `Fabric` is the result of a scan: vertices (hosts and switches), one `Links` row per cable and direction,
the adapters of hosts (their rails), and the forwarding tables if known. A `Profile` is the traffic between
ranks. An `Allocation` is the hosts and slots of a job, a `Placement` the host of each rank, an `Evaluation`
its cost.

A value that a type cannot have raises `InvalidValue` with the field; an unknown host `UnknownName`.

Units: capacities in bytes/s, traffic in bytes, congestion in seconds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from registry.model.arrays import Bools, Floats, Guids, Int8s, Ints, Longs
    from registry.model.circuit_plan import CircuitPlan
    from registry.model.counter_deltas import CounterDeltas, LinkRates, deltas, growth, link_rates, total
    from registry.model.counters import COUNTERS, NOT_COUNTED, CounterSweep
    from registry.model.fabric import HOST, SWITCH, Fabric, HasFabric, claimed_name, format_guid, is_made_up
    from registry.model.hosts import IntendedWiring, join_wiring
    from registry.model.job import HasJob, Job, Time, as_utc
    from registry.model.links import (
        LINK_COLUMNS,
        NO_PORT,
        NO_ROUTE,
        PORT_STATES,
        Adapters,
        ForwardingTables,
        Links,
        Ports,
    )
    from registry.model.placement import (
        Allocation,
        Bound,
        Evaluation,
        HasPlacement,
        HostOrder,
        Metrics,
        Placement,
    )
    from registry.model.profile import HasProfile, Profile, Trace
    from registry.model.simulation import Simulation

__all__ = [
    "COUNTERS",
    "HOST",
    "LINK_COLUMNS",
    "NOT_COUNTED",
    "NO_PORT",
    "NO_ROUTE",
    "PORT_STATES",
    "SWITCH",
    "Adapters",
    "Allocation",
    "Bools",
    "Bound",
    "CircuitPlan",
    "CounterDeltas",
    "CounterSweep",
    "Evaluation",
    "Fabric",
    "Floats",
    "ForwardingTables",
    "Guids",
    "HasFabric",
    "HasJob",
    "HasPlacement",
    "HasProfile",
    "HostOrder",
    "Int8s",
    "IntendedWiring",
    "Ints",
    "Job",
    "LinkRates",
    "Links",
    "Longs",
    "Metrics",
    "Placement",
    "Ports",
    "Profile",
    "Simulation",
    "Time",
    "Trace",
    "as_utc",
    "deltas",
    "format_guid",
    "growth",
    "is_made_up",
    "claimed_name",
    "join_wiring",
    "link_rates",
    "total",
]

_MODULES = {
    "arrays": "Bools Floats Guids Int8s Ints Longs",
    "circuit_plan": "CircuitPlan",
    "counter_deltas": "CounterDeltas LinkRates deltas growth link_rates total",
    "counters": "COUNTERS NOT_COUNTED CounterSweep",
    "fabric": "HOST SWITCH Fabric HasFabric claimed_name format_guid is_made_up",
    "hosts": "IntendedWiring join_wiring",
    "job": "HasJob Job Time as_utc",
    "links": "LINK_COLUMNS NO_PORT NO_ROUTE PORT_STATES Adapters ForwardingTables Links Ports",
    "placement": "Allocation Bound Evaluation HasPlacement HostOrder Metrics Placement",
    "profile": "HasProfile Profile Trace",
    "simulation": "Simulation",
}
"""Names of `__all__` by their module."""
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'registry.model' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"registry.model.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
