"""Input and results of checks: the subject, and findings with their severity."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

from mapping.checks.error_limits import ErrorLimits, PortErrors, port_errors
from mapping.routing.forwarding_tables import bound_tables
from mapping.routing.kernels.forwarding_tables import TableArrays
from registry.errors import UnknownName
from registry.model import CounterDeltas, Fabric, IntendedWiring
from registry.model.fabric import end_name
from registry.model.job import Losses


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
    """The input of a check.

    Attributes
    ----------
    fabric : Fabric
        Fabric with its forwarding tables, if known.
    plan : IntendedWiring or None
        Intended wiring.
    counters : CounterDeltas or None
        Growth of the port counters in the last period.
    losses : Losses or None
        What vanished from the scans, ever and in that period.
    limits : ErrorLimits
        Growth from which errors are reported.
    """

    fabric: Fabric
    plan: IntendedWiring | None = None
    counters: CounterDeltas | None = None
    losses: Losses | None = None
    limits: ErrorLimits = field(default_factory=ErrorLimits)

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
    """One fault of a fabric.

    Attributes
    ----------
    severity : Severity
    subject : str
        Name of the device or cable.
    text : str
        Description of the fault, including the subject.
    count : int
        Number of pairs, cables or devices; 1 if the check does not count.
    check : str
        Name of the check; set by `mapping.checks.catalog.check`.
    group : str
        Kind of the fault, if the check has several, such as ``missing``.
    remedy : str
        Command that undoes the fault, if there is one.
    """

    severity: Severity
    subject: str
    text: str
    count: int = 1
    check: str = ""
    group: str = ""
    remedy: str = ""

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
