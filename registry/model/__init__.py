"""Data types that all packages share: frozen dataclasses over read-only numpy arrays.

Input: numbers, names and arrays.
Output: values checked for consistency, with arrays copied to the stated dtype.

A `Fabric` is the result of a scan: vertices (hosts and switches), one `Links` row per cable and direction,
the adapters of hosts (their rails), and the forwarding tables if known. A `Profile` is the traffic between
ranks. An `Allocation` is the hosts and slots of a job, a `Placement` the host of each rank, an `Evaluation`
its cost.

A value that a type cannot have raises `InvalidValue` with the field; an unknown host `UnknownName`.

Units: capacities in bytes/s, traffic in bytes, congestion in seconds.
"""

from registry.model.arrays import Bools, Floats, Guids, Int8s, Ints, Longs
from registry.model.circuit_plan import CircuitPlan
from registry.model.counter_deltas import CounterDeltas, deltas, growth, total
from registry.model.counters import COUNTERS, NOT_COUNTED, CounterSweep
from registry.model.fabric import HOST, SWITCH, Fabric, HasFabric, format_guid, is_made_up
from registry.model.intended import IntendedWiring, join_wiring
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
from registry.model.profile import HasProfile, Profile
from registry.model.rates import LinkRates, link_rates
from registry.model.simulation import Simulation
from registry.model.trace import Trace

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
    "join_wiring",
    "link_rates",
    "total",
]
