"""Collection of vertices and cables for sources that identify devices by name.

InfiniBand scans identify devices by GUID, see `ingest.formats.fabrics.infiniband`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from registry.errors import InputError
from registry.model import HOST, NO_PORT, SWITCH, Bools, Fabric, Links

UNIT_RATE = 1.0
"""Bytes/s of a cable if neither the source nor the user gives a rate: seconds are then bytes."""
MAX_NAME = 255
"""Largest length of a device's name, in characters."""
MAX_VERTICES = 1 << 22


class Place(NamedTuple):
    """A location in a file, for errors."""

    path: str
    line: int | None = None
    text: str | None = None

    def error(self, reason: str) -> InputError:
        """Return an `InputError` that names the location."""
        return InputError(reason, path=self.path, line=self.line, text=self.text)


class _Vertex(NamedTuple):
    kind: int
    forwards: bool
    slots: int
    guid: int
    level: int
    coordinates: tuple[int, ...] | None


class _Cable(NamedTuple):
    a: str
    b: str
    rate: float | None
    a_port: int
    b_port: int
    cables: int


class Drafted(NamedTuple):
    """A fabric, its warnings, and its links without a rate, as in `ingest.parsed.Parsed`."""

    fabric: Fabric
    warnings: list[str]
    assumed: Bools


@dataclass(slots=True, eq=False)
class Draft:
    """The vertices and cables so far."""

    vertices: dict[str, _Vertex] = field(default_factory=dict)
    cables: list[_Cable] = field(default_factory=list)

    def host(
        self,
        name: str,
        place: Place,
        *,
        slots: int = 1,
        forwards: bool = False,
        coordinates: tuple[int, ...] | None = None,
    ) -> None:
        """Add a host; adding it again has no effect.

        Raises
        ------
        InputError
            The name is invalid, or belongs to a switch.
        """
        self._add(name, _Vertex(HOST, forwards, slots, 0, 0, coordinates), place)

    def switch(
        self,
        name: str,
        place: Place,
        *,
        guid: int = 0,
        level: int = 1,
        coordinates: tuple[int, ...] | None = None,
    ) -> None:
        """Add a switch; adding it again has no effect. Raises `InputError` as `host` does."""
        self._add(name, _Vertex(SWITCH, True, 0, guid, level, coordinates), place)

    def cable(
        self,
        a: str,
        b: str,
        *,
        rate: float | None = None,
        a_port: int = NO_PORT,
        b_port: int = NO_PORT,
        cables: int = 1,
    ) -> None:
        """Add a full-duplex cable between two vertices; `rate` is in bytes/s of one cable and direction."""
        self.cables.append(_Cable(a, b, rate, a_port, b_port, cables))

    def fabric(
        self,
        path: str,
        *,
        default_rate: float,
        levels: bool = False,
        observed_at: datetime | None = None,
    ) -> Drafted:
        """Return the fabric, with names sorted.

        Parameters
        ----------
        path : str
            Path of the file, for errors.
        default_rate : float
            Bytes/s of cables without a rate.
        levels : bool
            True if the levels of switches are known.
        observed_at : datetime, optional

        Raises
        ------
        InputError
            No cable connects two vertices.
        """
        names = tuple(sorted(self.vertices))
        kept = [cable for cable in self.cables if cable.a != cable.b]
        if not kept:
            raise InputError("no cable between two devices found", path=path)
        links = _links(kept, {name: index for index, name in enumerate(names)}, default_rate)
        unknown = np.tile([cable.rate is None for cable in kept], 2)
        columns = _columns([self.vertices[name] for name in names], levels)
        fabric = Fabric(names=names, links=links, observed_at=observed_at, **columns)
        counts = (
            (len(self.cables) - len(kept), "cable(s) lead from a device back to itself and are ignored"),
            (len(names) - len(np.unique(links.source)), "device(s) have no cable"),
        )
        warnings = [f"{count} {what}" for count, what in counts if count]
        return Drafted(fabric, warnings, unknown[links.order()])

    def _add(self, name: str, vertex: _Vertex, place: Place) -> None:
        before = self.vertices.get(name)
        if before is None:
            check_name(name, place)
            if len(self.vertices) >= MAX_VERTICES:
                raise place.error(f"more than {MAX_VERTICES} devices")
            self.vertices[name] = vertex
        elif before.kind != vertex.kind:
            raise place.error(f"{name!r} is the name of a host and of a switch")


def check_name(name: str, place: Place) -> str:
    """Return the name if it is valid.

    Raises
    ------
    InputError
        The name is empty, longer than `MAX_NAME`, has blanks around it or unprintable characters.
    """
    if not name or len(name) > MAX_NAME or name.strip() != name or not name.isprintable():
        raise place.error(f"{name[:40]!r} is not a valid name of a device")
    return name


def unknown_rates(count: int, default_rate: float, given: float | None) -> list[str]:
    """Return the warning about cables without a rate, or an empty list."""
    if not count:
        return []
    whose = "as requested" if given is not None else "is assumed, change it with --rate"
    unit = ", so seconds are bytes" if given is None and default_rate == UNIT_RATE else ""
    return [f"{count} cable(s) have no rate in the file: {default_rate:g} bytes/s each {whose}{unit}"]


def _links(cables: Sequence[_Cable], index: dict[str, int], default_rate: float) -> Links:
    """Return both directions of each cable."""
    a = np.array([index[cable.a] for cable in cables], np.int32)
    b = np.array([index[cable.b] for cable in cables], np.int32)
    a_port = np.array([cable.a_port for cable in cables], np.int32)
    b_port = np.array([cable.b_port for cable in cables], np.int32)
    count = np.array([cable.cables for cable in cables], np.int32)
    rate = np.array([default_rate if cable.rate is None else cable.rate for cable in cables], np.float64)
    return Links.of(
        np.r_[a, b],
        np.r_[b, a],
        np.r_[rate * count, rate * count],
        source_port=np.r_[a_port, b_port],
        target_port=np.r_[b_port, a_port],
        cables=np.r_[count, count],
    )


def _columns(vertices: Sequence[_Vertex], levels: bool) -> dict[str, Any]:
    """Return the columns of `Fabric` with one entry per vertex."""
    placed = [vertex.coordinates for vertex in vertices if vertex.coordinates is not None]
    return {
        "kind": np.array([vertex.kind for vertex in vertices], np.uint8),
        "slots": np.array([vertex.slots for vertex in vertices], np.int32),
        "forwards": np.array([vertex.forwards for vertex in vertices], np.bool_),
        "guid": np.array([vertex.guid for vertex in vertices], np.uint64),
        "lid": np.zeros(len(vertices), np.int32),
        "level": np.array([vertex.level for vertex in vertices], np.int32) if levels else None,
        "coordinates": np.array(placed, np.int32) if len(placed) == len(vertices) else None,
    }
