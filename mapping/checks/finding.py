"""What a check is given, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from mapping.routing.forwarding_tables import bound_tables
from mapping.routing.kernels.tables import TableArrays
from registry.errors import UnknownName
from registry.model import Fabric, IntendedWiring


class Severity(IntEnum):
    """How much a finding matters; higher is worse.

    A ``note`` may be meant so, a ``warning`` costs speed or is a risk, an ``error`` keeps hosts from each
    other.
    """

    NOTE = 1
    WARNING = 2
    ERROR = 3

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def of(cls, text: str) -> Severity:
        """The severity with this name.

        Raises
        ------
        UnknownName
        """
        known = {str(severity): severity for severity in cls}
        if text not in known:
            raise UnknownName("severity", text, known)
        return known[text]


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """What is checked.

    Attributes
    ----------
    fabric : Fabric
        With its tables where they are known.
    plan : IntendedWiring or None
        How it should be wired.
    """

    fabric: Fabric
    plan: IntendedWiring | None = None

    @cached_property
    def tables(self) -> TableArrays | None:
        """The forwarding tables bound to the links, once for all checks; None where there are none."""
        return None if self.fabric.tables is None else bound_tables(self.fabric)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong.

    Attributes
    ----------
    check : str
        Name of the check, see ``mapping.checks.catalog``.
    severity : Severity
    subject : str
        The device or cable that it is about, by name.
    text : str
        What is wrong, in words, subject included.
    count : int
        How often: pairs, cables, devices; 1 unless the check sums up.
    """

    check: str
    severity: Severity
    subject: str
    text: str
    count: int = 1


def port_text(fabric: Fabric, vertex: int, port: int) -> str:
    """A device and a port of it, as messages name them; only the device where the port is unknown."""
    name = fabric.names[vertex]
    return name if port < 0 else f"{name} port {port}"


def cable_text(fabric: Fabric, row: int) -> str:
    """A cable by both its ends."""
    links = fabric.links
    start = port_text(fabric, int(links.source[row]), int(links.source_port[row]))
    return f"{start} - {port_text(fabric, int(links.target[row]), int(links.target_port[row]))}"


def some(names: list[str], most: int = 4) -> str:
    """The first few of a list of names, and how many there are beside."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
