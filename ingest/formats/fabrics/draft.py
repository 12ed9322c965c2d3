"""Collection of vertices and cables for sources that identify devices by name.

InfiniBand scans identify devices by GUID, see `ingest.formats.fabrics.infiniband`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ingest.options import Options
from ingest.parsed import Parsed, counted
from ingest.reading.source import Place
from registry.errors import InputError
from registry.model import HOST, NO_PORT, SWITCH, Bools, Fabric, Links, Longs

UNIT_RATE = 1.0
"""Bytes/s of a cable if neither the source nor the user gives a rate: seconds are then bytes."""
MAX_NAME = 255
"""Largest length of a device's name, in characters."""
MAX_VERTICES = 1 << 22

Position = tuple[int, ...]
"""Coordinates of a vertex of a mesh or torus."""


class _Vertex(NamedTuple):
    kind: int
    forwards: bool
    slots: int
    guid: int
    level: int
    coordinates: Position | None


class _Cable(NamedTuple):
    a: str
    b: str
    rate: float | None
    a_port: int
    b_port: int
    cables: int


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
        coordinates: Position | None = None,
    ) -> None:
        """Add a host; adding it again has no effect.

        Raises:
            InputError: The name is invalid, or belongs to a switch.
        """
        self._add(name, _Vertex(HOST, forwards, slots, 0, 0, coordinates), place)

    def switch(
        self,
        name: str,
        place: Place,
        *,
        guid: int = 0,
        level: int = 1,
        coordinates: Position | None = None,
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

    def parsed(
        self,
        path: str,
        options: Options,
        *,
        default_rate: float = UNIT_RATE,
        warnings: Sequence[str] = (),
        levels: bool = False,
    ) -> Parsed:
        """Return the fabric, with names sorted.

        Args:
            path: Path of the file, for errors.
            options: Options of the ingest; `rate` replaces `default_rate`.
            default_rate: Bytes/s of cables without a rate.
            Warnings: Warnings so far; those of the fabric follow.
            levels: True if the levels of switches are known.

        Raises:
            InputError: No cable connects two vertices.
        """
        names = tuple(sorted(self.vertices))
        kept = [cable for cable in self.cables if cable.a != cable.b]
        if not kept:
            raise InputError("no cable between two devices found", path=path)
        rate = options.rate or default_rate
        links = _links(kept, {name: index for index, name in enumerate(names)}, rate)
        unknown = np.tile([cable.rate is None for cable in kept], 2)
        columns = _columns([self.vertices[name] for name in names], levels)
        notes = [] if options.rate else unknown_rates(sum(cable.rate is None for cable in self.cables), rate)
        notes += counted(
            (
                len(self.cables) - len(kept),
                "cable leads",
                "cables lead",
                "from a device back to itself: ignored",
            ),
            (len(names) - len(np.unique(links.source)), "device has", "devices have", "no cable"),
        )
        return Parsed(
            fabric=Fabric(names=names, links=links, **columns),
            assumed=unknown[links.order()],
            warnings=(*warnings, *notes),
        )

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

    Raises:
        InputError: The name is empty, longer than `MAX_NAME`, has blanks around it or unprintable characters.
    """
    if not name or len(name) > MAX_NAME or name.strip() != name or not name.isprintable():
        raise place.error(f"{name[:40]!r} is not a valid name of a device")
    return name


def unknown_rates(count: int, rate: float, *, given: bool = False) -> list[str]:
    """Return the warning about cables without a rate, if any; `given` is True if the caller gave the rate."""
    whose = "as requested" if given else "is assumed, change it with --rate"
    unit = ", so seconds are bytes" if not given and rate == UNIT_RATE else ""
    return counted(
        (count, "cable has", "cables have", f"no rate in the file: {rate:g} bytes/s each {whose}{unit}")
    )


def attached_to_one(source: Longs, target: Longs, n: int) -> Bools:
    """Return True for vertices with exactly one neighbour (bool[n]); all False if every vertex has one.

    Sources without the kinds of their vertices are read so: these are hosts attached to a switch; if there
    are none (a torus), every vertex is a host that forwards.
    """
    ends = np.unique(np.concatenate([source * n + target, target * n + source]))
    one = np.bincount(ends // n, minlength=n) == 1
    return np.zeros(n, np.bool_) if one.all() else one


def grid_links(
    positions: Sequence[Position], sizes: Sequence[int], wrap: Sequence[bool]
) -> Iterator[tuple[Position, Position]]:
    """Yield the links between neighbours along each axis, each once.

    A link exists if both positions exist. Along an axis that wraps, the last position is beside the first:
    with two positions there are two links between them, with one position none.

    Args:
        positions: Different positions, each from 0 to `sizes` - 1.
        sizes: Size of each axis.
        wrap: True for axes that close to rings.
    """
    there = set(positions)
    for position in positions:
        for axis, size in enumerate(sizes):
            beside = (position[axis] + 1) % size
            if size == 1 or (beside == 0 and not wrap[axis]):
                continue
            other = (*position[:axis], beside, *position[axis + 1 :])
            if other in there:
                yield position, other


def _links(cables: Sequence[_Cable], index: dict[str, int], default_rate: float) -> Links:
    """Return both directions of each cable."""
    a, b = [index[cable.a] for cable in cables], [index[cable.b] for cable in cables]
    a_port, b_port = [cable.a_port for cable in cables], [cable.b_port for cable in cables]
    count = [cable.cables for cable in cables]
    capacity = [(cable.rate or default_rate) * cable.cables for cable in cables]
    return Links.of(
        a + b,
        b + a,
        capacity * 2,
        source_port=a_port + b_port,
        target_port=b_port + a_port,
        cables=count * 2,
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
