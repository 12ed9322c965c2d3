"""Input and results of checks: the subject, and findings with their severity.

Limits of error counters, and the ports whose counters grew beyond them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from functools import cached_property
from types import MappingProxyType

import numpy as np

from mapping.routing.forwarding_tables import bound_tables
from mapping.routing.kernels.forwarding_tables import TableArrays
from registry.errors import InvalidValue, UnknownName
from registry.model import (
    NOT_COUNTED,
    Bools,
    CounterDeltas,
    Fabric,
    Floats,
    IntendedWiring,
    Longs,
    format_guid,
)
from registry.model.counter_deltas import sending_ports
from registry.model.counters import ERRORS
from registry.model.fabric import end_name
from registry.model.job import Losses

DEFAULT_LIMITS: Mapping[str, float] = MappingProxyType(
    {
        "symbol_errors": 10,
        "link_error_recoveries": 10,
        "link_downed": 2,
        "rcv_errors": 10,
        "rcv_remote_physical_errors": 100,
        "rcv_switch_relay_errors": 100,
        "xmit_discards": 100,
        "xmit_constraint_errors": 100,
        "rcv_constraint_errors": 100,
        "local_link_integrity_errors": 10,
        "excessive_buffer_overruns": 10,
        "vl15_dropped": 100,
    }
)
"""Growth per period that is still accepted: the values of ibqueryerrors' ``error_thresholds`` (rdma-core).

Except ``link_downed``, which is 10 there: the restart of a host brings its link down twice.
"""
BIT_ERROR_RATE = 1e-12
"""Highest bit error rate of a link by the InfiniBand specification."""
WORDS: Mapping[str, str] = MappingProxyType(
    {
        "symbol_errors": "symbol errors",
        "link_error_recoveries": "link error recoveries",
        "link_downed": "link downs",
        "rcv_errors": "receive errors",
        "rcv_remote_physical_errors": "remote physical errors",
        "rcv_switch_relay_errors": "relay errors",
        "xmit_discards": "transmit discards",
        "xmit_constraint_errors": "transmit constraint errors",
        "rcv_constraint_errors": "receive constraint errors",
        "local_link_integrity_errors": "link integrity errors",
        "excessive_buffer_overruns": "buffer overruns",
        "qp1_dropped": "QP1 drops",
        "vl15_dropped": "VL15 drops",
    }
)
"""Error counters for people."""
_BITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorLimits:
    """Growth of error counters from which a link is reported."""

    period: timedelta = timedelta(days=1)
    """Period over which counters and scans are compared."""
    errors: Mapping[str, float] = field(default_factory=lambda: DEFAULT_LIMITS)
    """Errors that a port may count in the period, by counter; others are not limited. If the growth is of a
    longer time, in proportion more."""
    bit_error_rate: float = BIT_ERROR_RATE
    """Symbol errors per bit up to which they are within the specification, and only noted."""

    def __post_init__(self) -> None:
        for name, limit in self.errors.items():
            if name not in ERRORS:
                raise UnknownName("error counter", name, ERRORS)
            if not limit >= 0:
                raise InvalidValue("ErrorLimits.errors", f"{name} must not be negative")
        if not 0 <= self.bit_error_rate < 1:
            raise InvalidValue("ErrorLimits.bit_error_rate", "must be at least 0 and below 1")
        if self.period <= timedelta(0):
            raise InvalidValue("ErrorLimits.period", "must be above zero")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PortErrors:
    """Growth of the error counters of all ports, with its limits."""

    grown: CounterDeltas
    """Growth of all counters."""
    device: tuple[str, ...]
    """Name of the switch or host of each port, or its GUID if the fabric lacks it; length p."""
    link: Longs
    """int64[p]: Row of ``fabric.links`` that leaves the port; -1 if none does."""
    names: tuple[str, ...]
    """Error counters that some port has; length e."""
    amount: Longs
    """int64[p, e]: Growth; 0 if unknown."""
    covered: Floats
    """float64[p, e]: Seconds of this growth; 0 if unknown."""
    limit: Floats
    """float64[p, e]: Largest growth that is not reported; infinite if there is no limit."""
    harmless: Bools
    """bool[p, e]: True if growth beyond the limit need not be a fault: symbol errors within the bit error
    rate, and packets that a switch had to drop, such as multicasts that would return to their sender."""
    at_least: Bools
    saturated: Bools
    """bool[p, e]: As in `grown`."""

    @property
    def over(self) -> Bools:
        """True if a counter grew beyond its limit (bool[p, e])."""
        return self.amount > self.limit

    @property
    def excess(self) -> Floats:
        """Largest growth of each port in relation to its limit (float64[p]).

        Above 1: a fault, since growth that need not be one counts as 1 at most.
        """
        ratio = self.amount / np.maximum(self.limit, 0.5)  # a limit of 0: one error is twice as much
        worst: Floats = np.where(self.harmless, np.minimum(ratio, 1.0), ratio).max(axis=1, initial=0.0)
        return worst


def port_errors(fabric: Fabric, grown: CounterDeltas, limits: ErrorLimits) -> PortErrors:
    """Return the growth of the error counters of ports, with the limits that apply to each."""
    links = fabric.links
    sender = sending_ports(fabric, grown)
    link = np.full(len(grown), -1, np.int64)
    link[sender[sender >= 0]] = np.flatnonzero(sender >= 0)
    columns = [column for column, name in enumerate(grown.names) if name in ERRORS]
    names = tuple(grown.names[column] for column in columns)
    covered = grown.covered[:, columns]
    allowed = np.asarray([limits.errors.get(name, np.inf) for name in names], np.float64)
    amount = np.where(grown.amount[:, columns] == NOT_COUNTED, 0, grown.amount[:, columns])
    bits = np.where(link >= 0, links.capacity[link], 0.0)[:, None] * _BITS * covered
    symbols = np.asarray([name == "symbol_errors" for name in names], bool)
    dropped = np.asarray([name == "rcv_switch_relay_errors" for name in names], bool)
    return PortErrors(
        grown=grown,
        device=_devices(fabric, grown),
        link=link,
        names=names,
        amount=amount,
        covered=covered,
        limit=allowed * np.maximum(1.0, covered / limits.period.total_seconds()),
        harmless=dropped | (symbols & (amount <= limits.bit_error_rate * bits)),
        at_least=grown.at_least[:, columns],
        saturated=grown.saturated[:, columns],
    )


def _devices(fabric: Fabric, grown: CounterDeltas) -> tuple[str, ...]:
    adapters = fabric.adapters
    owner = dict(zip(adapters.guid.tolist(), adapters.host.tolist(), strict=True))
    owner |= {int(fabric.guid[vertex]): vertex for vertex in fabric.switches.tolist()}
    return tuple(
        fabric.names[owner[guid]] if guid in owner else format_guid(guid) for guid in grown.guid.tolist()
    )


class Severity(IntEnum):
    """Severity of a finding; higher is worse.

    A ``note`` may be intended, a ``warning`` costs speed or is a risk, an ``error`` disconnects hosts.
    """

    NOTE = 1
    WARNING = 2
    ERROR = 3

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def of(cls, text: str) -> Severity:
        """Return the severity with this name; an unknown one raises `UnknownName`."""
        known = {str(severity): severity for severity in cls}
        if text not in known:
            raise UnknownName("severity", text, known)
        return known[text]


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """The input of a check."""

    fabric: Fabric
    """Fabric with its forwarding tables, if known."""
    plan: IntendedWiring | None = None
    """Intended wiring."""
    counters: CounterDeltas | None = None
    """Growth of the port counters in the last period."""
    losses: Losses | None = None
    """What vanished from the scans, ever and in that period."""
    limits: ErrorLimits = field(default_factory=ErrorLimits)
    """Growth from which errors are reported."""

    @cached_property
    def tables(self) -> TableArrays | None:
        """Forwarding tables resolved to the links, shared by all checks; None if there are none."""
        return None if self.fabric.tables is None else bound_tables(self.fabric)

    @cached_property
    def port_errors(self) -> PortErrors | None:
        """Growth of the error counters with its limits, shared by all checks; None without counters."""
        return None if self.counters is None else port_errors(self.fabric, self.counters, self.limits)


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a fabric."""

    severity: Severity
    subject: str
    """Name of the device or cable."""
    text: str
    """Description of the fault, including the subject."""
    count: int = 1
    """Number of pairs, cables or devices; 1 if the check does not count."""
    check: str = ""
    """Name of the check; set by `mapping.checks.checks.check`."""
    group: str = ""
    """Kind of the fault, if the check has several, such as ``missing``."""
    remedy: str = ""
    """Command that undoes the fault, if there is one."""

    @property
    def heading(self) -> str:
        """Check and group, such as ``wiring: missing``; only the check if it has no groups."""
        return f"{self.check}: {self.group}" if self.group else self.check


def cable_text(fabric: Fabric, row: int) -> str:
    """Return a cable for messages, by both ends."""
    return f"{end_name(fabric, row)} - {end_name(fabric, row, 'target')}"


def unnamed_text(fabric: Fabric) -> str:
    """Return what to say beside what hosts lack: adapters without a machine's name may belong to them."""
    count = len(fabric.unnamed)
    return f"; {count} adapters without a name may be theirs" if count else ""


def some(names: list[str], most: int = 4) -> str:
    """Return the first few of a list of names, and the number of the others."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
