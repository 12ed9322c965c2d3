"""Type of a fabric: a cluster interconnect at one time.

Names of ports: ``DEVICE:PORT``, or ``HOST ADAPTER:PORT`` where several adapters of a host have that port.

Commands accept these names; pages, findings and JSON show them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from registry.errors import InvalidValue, UnknownName
from registry.model.arrays import (
    Bools,
    Floats,
    Guids,
    Int8s,
    Ints,
    Longs,
    check_range,
    freeze_all,
    of_length,
    one_each,
    readonly,
)
from registry.model.host_names import same_hosts
from registry.model.links import NO_PORT, Adapters, ForwardingTables, Links, Ports
from registry.model.views import Drawn, Tabular, first_repeat, sequence_of, to_networkx

HOST = 0
SWITCH = 1
_MADE_UP = re.compile(r"(guid-0x|lid-)[0-9a-f]+( |$)")
_CLAIMED = re.compile(r"(.+) \[(?:0x[0-9a-f]{16}|lid-\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fabric(Drawn, Tabular):
    """A cluster interconnect at one time; notebooks show it as a picture."""

    names: tuple[str, ...]
    """Unique names of the vertices; length `n`. Parsers sort them."""
    kind: Int8s
    """uint8[n]: `HOST` or `SWITCH`."""
    slots: Ints
    """int32[n]: Default number of ranks of a host; 0 for switches."""
    forwards: Bools
    """bool[n]: True if the vertex forwards traffic of others: switches and nodes of direct networks do, hosts
    with adapters do not."""
    guid: Guids
    """uint64[n]: Node GUID of a switch; 0 if unknown and for hosts, whose adapters have GUIDs."""
    lid: Ints
    """int32[n]: LID of a switch in the scan; 0 if unknown."""
    links: Links
    """Links in the order of `Links.order`."""
    adapters: Adapters = field(default_factory=Adapters)
    """Adapters of hosts; empty if unknown: then each host is one end point with all its links."""
    ports: Ports = field(default_factory=Ports)
    """Ports that are down or could be faster; often empty."""
    tables: ForwardingTables | None = None
    level: Ints | None = None
    """int32[n]: Tier of a vertex: 0 hosts, 1 leaf switches, ..."""
    coordinates: Ints | None = None
    """int32[n, d]: Position in a torus or mesh."""
    observed_at: datetime | None = None
    """Time of the scan, UTC."""
    indptr: Longs = field(init=False)
    neighbour: Ints = field(init=False)
    capacity: Floats = field(init=False)
    cables: Longs = field(init=False)
    """int64[n + 1] and int32[arcs] and float64[arcs] and int64[arcs]: Directed CSR adjacency derived from
    `links`: one arc per pair of vertices, parallel cables bundled."""
    arc_of_link: Ints = field(init=False)
    """int32[m]: Arc of each link; ascending."""

    def __post_init__(self) -> None:
        n = len(self.names)
        if n == 0:
            raise InvalidValue("Fabric.names", "a fabric has at least one vertex")
        if len(set(self.names)) != n:
            twice = first_repeat(self.names)
            raise InvalidValue("Fabric.names", f"two vertices are named {twice!r}")
        freeze_all(self, n, "kind", "slots", "forwards", "guid", "lid")
        if self.level is not None:
            freeze_all(self, n, "level")
        if self.coordinates is not None:
            coordinates = readonly(self.coordinates, np.int32, "Fabric.coordinates")
            if coordinates.ndim != 2 or len(coordinates) != n:
                raise InvalidValue("Fabric.coordinates", f"has shape {coordinates.shape}")
            object.__setattr__(self, "coordinates", coordinates)
        check_range(self, "slots", 0, 1 << 31)
        if bool((self.slots[self.kind == SWITCH] > 0).any()):
            raise InvalidValue("Fabric.slots", "a switch hosts no ranks")
        if self.observed_at is not None and self.observed_at.tzinfo is None:
            raise InvalidValue("Fabric.observed_at", "needs a time zone")
        self._check_indices(n)
        self._bundle()
        order = self.ports.order()
        if not np.array_equal(order, np.arange(len(order))):
            object.__setattr__(self, "ports", self.ports.take(order))

    def _check_indices(self, n: int) -> None:
        """Raise if a link, an adapter or a port refers to a vertex or an adapter that does not exist."""
        links, ports, a = self.links, self.ports, len(self.adapters)
        for name in ("source", "target"):
            check_range(links, name, 0, n)
            check_range(links, f"{name}_adapter", NO_PORT, a)
        check_range(self.adapters, "host", 0, n)
        check_range(ports, "vertex", 0, n)
        check_range(ports, "adapter", NO_PORT, a)

    def _bundle(self) -> None:
        """Sort the links and derive the adjacency with bundled cables."""
        order = self.links.order()
        if not np.array_equal(order, np.arange(len(order))):
            object.__setattr__(self, "links", self.links.take(order))
        links, n = self.links, len(self.names)
        pair = links.source.astype(np.int64) * n + links.target
        first = np.flatnonzero(np.r_[True, pair[1:] != pair[:-1]]) if len(pair) else np.zeros(0, int)
        arc_of_link = np.zeros(len(pair), np.int32)
        arc_of_link[first[1:]] = 1
        arc_of_link = np.cumsum(arc_of_link, dtype=np.int32)
        indptr = np.searchsorted(links.source[first], np.arange(n + 1)).astype(np.int64)
        derived = {
            "indptr": indptr,
            "neighbour": links.target[first],
            "capacity": np.add.reduceat(links.capacity, first) if len(first) else np.zeros(0),
            "cables": np.add.reduceat(links.cables.astype(np.int64), first)
            if len(first)
            else np.zeros(0, np.int64),
            "arc_of_link": arc_of_link,
        }
        for name, values in derived.items():
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    @classmethod
    def from_arcs(
        cls,
        names: Iterable[str],
        source: ArrayLike,
        target: ArrayLike,
        capacity: ArrayLike,
        *,
        slots: ArrayLike | None = None,
        forwards: ArrayLike | None = None,
    ) -> Self:
        """Return a fabric of a plain directed graph.

        Args:
            names: Unique names of the vertices; their order is kept.
            source, target (int[m]): Ends of each arc as indices from 0; give both directions of a full-duplex
                link. Repeated pairs are parallel cables.
            capacity (float[m] or float): Bytes/s.
            slots (int[n] or int): Ranks of each vertex (default: 1). A vertex with 0 is a switch.
            forwards (bool[n] or bool): True for vertices that forward traffic of others. Switches always do;
                hosts do by default if there is no switch.

        Raises:
            InvalidValue: Names the argument.
        """
        names = tuple(str(name) for name in sequence_of(names, object, "Fabric.names"))
        n = len(names)
        slots = one_each(1 if slots is None else slots, np.int32, n, "Fabric.slots")
        direct = bool((slots > 0).all())
        forwards = one_each(direct if forwards is None else forwards, np.bool_, n, "Fabric.forwards")
        fabric = cls(
            names=names,
            kind=np.where(slots > 0, HOST, SWITCH),
            slots=slots,
            forwards=forwards | (slots == 0),
            guid=np.zeros(n, np.uint64),
            lid=np.zeros(n, np.int32),
            links=Links.of(source, target, capacity),
        )
        if "0" not in names:  # a graph numbered from 1
            ends = np.union1d(fabric.links.source, fabric.links.target)
            fabric.require_one_meaning(ends.tolist(), "source")
        return fabric

    to_networkx = to_networkx

    def columns(self) -> Mapping[str, Any]:
        """Return the links by column: names, ports and GUIDs of both ends, capacity and cables."""
        names, links, adapters = np.asarray(self.names, object), self.links, self.adapters
        guids = np.asarray([*map(format_guid, adapters.guid.tolist()), ""], object)  # the last for NO_PORT
        return {
            "source": names[links.source],
            "source_port": links.source_port,
            "source_guid": guids[links.source_adapter],
            "target": names[links.target],
            "target_port": links.target_port,
            "target_guid": guids[links.target_adapter],
            "capacity": links.capacity,
            "cables": links.cables,
        }

    def __repr__(self) -> str:
        return f"Fabric({self.size}{'' if self.tables is None else ', with forwarding tables'})"

    def __len__(self) -> int:
        return len(self.names)

    @property
    def hosts(self) -> Longs:
        """Vertices that are hosts, ascending: int64[h]."""
        return _fixed(np.flatnonzero(self.kind == HOST))

    @property
    def unnamed(self) -> Longs:
        """Hosts that are adapters whose machine's name is not known, ascending; see `is_made_up`."""
        return _fixed(np.array([v for v in self.hosts.tolist() if is_made_up(self.names[v])], np.int64))

    @property
    def switches(self) -> Longs:
        """Vertices that are switches, ascending: int64[s]."""
        return _fixed(np.flatnonzero(self.kind == SWITCH))

    @property
    def network_link(self) -> Bools:
        """True for links between forwarding vertices, which exclude the cables of hosts: bool[m]."""
        return self.forwards[self.links.source] & self.forwards[self.links.target]

    @property
    def cable_count(self) -> int:
        """Number of physical cables; a full-duplex cable counts once."""
        links = self.links
        up = int(links.cables[links.source < links.target].sum())
        down = int(links.cables[links.source > links.target].sum())
        return max(up, down)

    @property
    def size(self) -> str:
        """Number of hosts, of adapters without a machine's name if there are any, of switches and cables."""
        unnamed = len(self.unnamed)
        apart = f"{unnamed} adapters without a name, " if unnamed else ""
        hosts, switches = len(self.hosts) - unnamed, len(self.switches)
        return f"{hosts} hosts, {apart}{switches} switches, {self.cable_count} cables"

    def vertices(self, names: Iterable[str], *, kind: str = "host") -> Ints:
        """Return the vertices with these names as int32; they are all of one source, in short or in full.

        See `registry.model.host_names` for names that differ from the fabric's in their domain.

        Raises:
            UnknownName: With the closest names.
            InvalidValue: One text, or something else than names.
        """
        given = sequence_of(names, str, f"{kind}s")
        found = self.known_vertices(given, kind=kind)
        if missing := next((name for name in given if name not in found), None):
            wanted = self.hosts if kind == "host" else range(len(self))
            raise UnknownName(kind, missing, [self.names[v] for v in wanted])
        return np.asarray([found[name] for name in given], np.int32)

    def known_vertices(self, names: Iterable[str], *, kind: str = "host") -> dict[str, int]:
        """Return the vertex of each of these names that the fabric has; see `vertices`."""
        index = {name: vertex for vertex, name in enumerate(self.names)}
        wanted = dict.fromkeys(names)
        if all(name in index for name in wanted):
            return {name: index[name] for name in wanted}
        known = [self.names[v] for v in (self.hosts if kind == "host" else range(len(self)))]
        whole = {name: index[name] for name in wanted if name in index}
        return {name: index[own] for name, own in same_hosts(wanted, known).items()} | whole

    def named_as(self, hosts: Iterable[str]) -> Self:
        """Return the fabric in which these hosts have the names given here, in short or in full."""
        own = {vertex: name for name, vertex in self.known_vertices(hosts).items()}
        names = tuple(own.get(vertex, name) for vertex, name in enumerate(self.names))
        return self if names == self.names else replace(self, names=names)

    def named_or_numbered(self, given: Iterable[str] | Iterable[int], label: str) -> Ints:
        """Return vertices that are given by name or by index, as int32.

        Numbers that are names of vertices, too, are an error if the two meanings differ (a graph numbered
        from 1). Read-only arrays, such as `hosts`, slices of it and ``Placement.host_of_rank``, are indices.

        Raises:
            UnknownName: A name that the fabric lacks.
            InvalidValue: Numbers with two meanings or outside the fabric, or neither names nor numbers.
        """
        own = isinstance(given, np.ndarray) and not given.flags.writeable
        items = sequence_of(given, object, label)
        if any(isinstance(vertex, str) for vertex in items):
            return self.vertices(sequence_of(items, str, label))
        found = of_length(readonly(items, np.int32, label), len(items), label)
        if not own:
            self.require_one_meaning(found.tolist(), label)
        if len(found) and (int(found.min()) < 0 or int(found.max()) >= len(self)):
            raise InvalidValue(label, f"outside 0 .. {len(self) - 1}")
        return found

    def require_one_meaning(self, numbers: Sequence[int], label: str) -> None:
        """Raise `InvalidValue` if all numbers are names of vertices, and one is not that vertex's index."""
        index = {name: vertex for vertex, name in enumerate(self.names) if name.isdecimal()}
        named = [index.get(str(number)) for number in numbers]
        if None in named or named == list(numbers):
            return
        number = min(at for at, vertex in zip(numbers, named, strict=True) if at != vertex)
        if number < len(self):
            there = self.names[number]
            meant = f"may be the vertex {str(number)!r} or the one with index {number}, {there!r}"
        else:
            meant = f"is the name of a vertex, and no index below {len(self)}"
        raise InvalidValue(label, f"{number} {meant}: give names as text, such as {str(number)!r}")


def _fixed(vertices: Longs) -> Longs:
    vertices.flags.writeable = False
    return vertices


class HasFabric(Protocol):
    """An object with a fabric, such as a `Snapshot`; functions accept it in place of the fabric."""

    @property
    def fabric(self) -> Fabric:
        """Fabric of the object."""


def format_guid(guid: int) -> str:
    """Return a GUID as ``0x`` and 16 lower-case digits; empty text for an unknown GUID."""
    return f"0x{int(guid):016x}" if guid else ""


def is_made_up(name: str) -> bool:
    """Return True if a parser made the name of a host or switch from a GUID or LID."""
    return _MADE_UP.match(name) is not None


def claimed_name(name: str) -> str:
    """Return ``calc2`` for ``calc2 [0x...]``, as parsers name devices that claim one name; else no text."""
    found = _CLAIMED.fullmatch(name)
    return "" if found is None else found[1]


End = Literal["source", "target"]
ENDS: tuple[End, End] = ("source", "target")


class PortNames(NamedTuple):
    """Names of the ports of all links after the names of their devices, without repetition."""

    texts: tuple[str, ...]
    """Such as ``:33`` or `` mlx5_0:1``; the first one is empty, as for a port that is not known."""
    source: Longs
    target: Longs
    """int64[m]: Index of the text of each end of each link."""


def port_name(device: str, port: int) -> str:
    """Return ``DEVICE:PORT``, or the device alone if its port is not known (`NO_PORT`)."""
    return device if port == NO_PORT else f"{device}:{port}"


def end_name(fabric: Fabric, row: int, end: End = "source") -> str:
    """Return the name of the port at one end of a link (a row of ``fabric.links``)."""
    return "".join(end_parts(fabric, row, end))


def end_parts(fabric: Fabric, row: int, end: End = "source") -> tuple[str, str]:
    """Return the name of the port at one end of a link in two parts: ``node1`` and `` mlx5_0:1``."""
    vertices, ports, adapters = end_columns(fabric, end)
    vertex, port, adapter = int(vertices[row]), int(ports[row]), int(adapters[row])
    several = adapter != NO_PORT and int(((vertices == vertex) & (ports == port)).sum()) > 1
    name = adapter_names(fabric, [adapter])[adapter] if several and port != NO_PORT else ""
    return fabric.names[vertex], port_name(name and f" {name}", port)


def port_names(fabric: Fabric) -> PortNames:
    """Return the names of the ports at both ends of all links, as `end_parts` returns them."""
    m, (source, target) = len(fabric.links), (end_columns(fabric, "source"), end_columns(fabric, "target"))
    port = np.r_[source[1], target[1]].astype(np.int64)
    adapter = np.r_[source[2], target[2]].astype(np.int64)
    adapter[~np.r_[_repeated(*source[:2]), _repeated(*target[:2])] | (port == NO_PORT)] = NO_PORT
    which, place = np.unique(adapter, return_inverse=True)
    names = {NO_PORT: ""} | adapter_names(fabric, which[which != NO_PORT].tolist())
    words = [names[one] and f" {names[one]}" for one in which.tolist()]
    known = sorted(set(words))
    word = np.array([known.index(one) for one in words], np.int64)[place]
    most = int(port.max(initial=0)) + 2
    pairs, index = np.unique(word * most + port + 1, return_inverse=True)
    texts = (port_name(known[pair // most], pair % most - 1) for pair in pairs.tolist())
    return PortNames(("", *texts), index[:m] + 1, index[m:] + 1)


def adapter_names(fabric: Fabric, adapters: list[int]) -> dict[int, str]:
    """Return the names that distinguish some adapters from the others of their hosts.

    That is the last word of the description, or the GUID if another adapter has the same word.
    """
    about = fabric.adapters
    beside = np.flatnonzero(np.isin(about.host, about.host[adapters])).tolist()
    words = {row: (int(about.host[row]), (about.names[row].split() or [""])[-1]) for row in beside}
    count = Counter(words.values())
    alone = {row for row in adapters if words[row][1] and count[words[row]] == 1}
    return {row: words[row][1] if row in alone else format_guid(int(about.guid[row])) for row in adapters}


def end_columns(fabric: Fabric, end: End) -> tuple[Ints, Ints, Ints]:
    """Return the vertex, port and adapter at one end of all links."""
    links = fabric.links
    if end == "source":
        return links.source, links.source_port, links.source_adapter
    return links.target, links.target_port, links.target_adapter


def _repeated(vertex: Ints, port: Ints) -> Bools:
    """Return for each end whether another one has the same device and port."""
    keys = vertex.astype(np.int64) * (int(port.max(initial=0)) + 2) + port + 1
    _, place, count = np.unique(keys, return_inverse=True, return_counts=True)
    repeated: Bools = count[place] > 1
    return repeated
