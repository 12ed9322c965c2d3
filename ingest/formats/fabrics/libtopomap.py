"""LibTopoMap's map file: the network graph read by Hoefler and Snir's mapping library.

Line 1 is ``num: N``, followed by ``w`` if edges have weights; then N lines ``vertex name``; then N lines
``vertex neighbour neighbour ...``, with weights ``neighbour(weight)``. Vertices are in any order.

The library uses a weight as the edge's capacity, so a weight multiplies the rate of a cable; a repeated
neighbour is a parallel cable. Directions are read as listed. The file contains no rates: by default a cable
has 1 byte/s, so that seconds of congestion are bytes.

The file does not separate hosts and switches either; the library asks for the names of hosts. Here vertices
with exactly one neighbour are hosts attached to a switch, and the others are switches; if there are none (a
torus, a mesh) the network is direct: every vertex is a host that forwards. Source: LibTopoMap 0.9,
topoparser.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

import numpy as np

from ingest.formats.fabrics.draft import attached_to_one
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.source import Place, SourceFile
from registry.errors import InputError
from registry.model import HOST, SWITCH, Fabric, Links, Longs

DEFAULT_RATE = 1.0
"""Default bytes/s of a cable of weight 1."""
MAX_VERTICES = 1 << 24

_HEAD = re.compile(r"num:\s*(\d{1,9})\s*(w?)\s*")
_NAME = re.compile(r"(\d{1,9})[ \t]+(\S.*)")
_NEIGHBOURS = re.compile(r"(\d{1,9})((?:[ \t]+\d{1,9})*+)\s*")
_WEIGHTED = re.compile(r"(\d{1,9})((?:[ \t]+\d{1,9}\(\d{1,12}\))*+)\s*")
_EDGE = re.compile(r"(\d+)(?:\((\d+)\))?")


def _recognise_libtopomap(head: str, path: str) -> bool:
    """Return True if the first line is that of the format."""
    return _HEAD.fullmatch(head.split("\n", 1)[0].rstrip("\r")) is not None


def _parse_libtopomap(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one map; a neighbour that is no vertex and a weight of 0 are errors."""
    (file,) = files
    reader = _Reader(file)
    count, weighted = reader.head()
    names = reader.names(count)
    arcs = reader.arcs(count, weighted)
    arcs, warnings = _both_directions(arcs)
    if not len(arcs):
        raise InputError("the map has no edges", path=file.path)
    if options.rate is None:
        warnings.append("the map contains no rates: 1 byte/s per cable is assumed, so seconds are bytes")
    fabric = _fabric(names, arcs, options.rate or DEFAULT_RATE)
    assumed = np.full(len(fabric.links), options.rate is None)
    return Parsed(fabric=fabric, assumed=assumed, warnings=tuple(warnings))


class _Reader:
    """The lines of a map, with errors that name them."""

    def __init__(self, file: SourceFile) -> None:
        self.places = list(file.places())
        while not self.places[-1].text.strip():
            self.places.pop()

    def head(self) -> tuple[int, bool]:
        """Return the number of vertices, and True if edges have weights."""
        head = self.places[0]
        match = _HEAD.fullmatch(head.text)
        if match is None or not 0 < int(match[1]) <= MAX_VERTICES:
            raise head.error("expected 'num: N' with N vertices")
        count, lines = int(match[1]), len(self.places)
        if lines != 2 * count + 1:
            reason = f"{count} vertices need {2 * count + 1} lines, the file has {lines}"
            raise InputError(reason, path=head.path, line=lines)
        return count, bool(match[2])

    def names(self, count: int) -> tuple[str, ...]:
        """Return the name of each vertex."""
        names: dict[int, str] = {}
        seen: set[str] = set()
        for place in self.places[1 : count + 1]:
            match = _NAME.fullmatch(place.text)
            if match is None:
                raise place.error("expected 'vertex name'")
            vertex = _vertex(match[1], count, names, place)
            name = match[2].rstrip()
            if name in seen:
                raise place.error(f"two vertices are named {name!r}")
            seen.add(name)
            names[vertex] = name
        return tuple(names[vertex] for vertex in range(count))

    def arcs(self, count: int, weighted: bool) -> Longs:
        """Return the source, target and weight of each edge as listed (int64[arcs, 3])."""
        rows: list[tuple[int, int, int]] = []
        seen: set[int] = set()
        pattern = _WEIGHTED if weighted else _NEIGHBOURS
        for place in self.places[count + 1 :]:
            match = pattern.fullmatch(place.text)
            if match is None:
                edges = "neighbour(weight) ..." if weighted else "neighbour ..."
                raise place.error(f"expected 'vertex {edges}'")
            source = _vertex(match[1], count, seen, place)
            seen.add(source)
            for edge in _EDGE.finditer(match[2]):
                target, weight = int(edge[1]), int(edge[2] or 1)
                if target >= count or weight == 0:
                    wrong = f"the neighbour {target} is no vertex" if weight else "an edge has weight 0"
                    raise place.error(wrong)
                rows.append((source, target, weight))
        return np.array(rows, np.int64).reshape(-1, 3)


def _vertex(digits: str, count: int, seen: Container[int], place: Place) -> int:
    vertex = int(digits)
    if vertex >= count:
        raise place.error(f"vertex {vertex} is not below {count}")
    if vertex in seen:
        raise place.error(f"vertex {vertex} is repeated")
    return vertex


def _both_directions(arcs: Longs) -> tuple[Longs, list[str]]:
    """Return the arcs without loops, mirrored if the whole map lists each edge once, and warnings."""
    loops = arcs[:, 0] == arcs[:, 1]
    warnings = counted((int(loops.sum()), "edge leads", "edges lead", "from a vertex to itself: ignored"))
    arcs = arcs[~loops]
    pairs = {(int(source), int(target)) for source, target, _ in arcs}
    single = sum((target, source) not in pairs for source, target in pairs)
    if pairs and single == len(pairs):
        warnings.append("the map lists each edge once: the other direction is added")
        arcs = np.concatenate([arcs, arcs[:, [1, 0, 2]]])
    elif single:
        warnings += counted((single, "edge is", "edges are", "listed in one direction only, and kept so"))
    return arcs, warnings


def _fabric(names: tuple[str, ...], arcs: Longs, rate: float) -> Fabric:
    """Return the fabric of the arcs."""
    n = len(names)
    order = sorted(range(n), key=names.__getitem__)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    source, target = rank[arcs[:, 0]], rank[arcs[:, 1]]
    attached = attached_to_one(source, target, n)
    host = attached if attached.any() else np.ones(n, np.bool_)
    return Fabric(
        names=tuple(names[vertex] for vertex in order),
        kind=np.where(host, HOST, SWITCH).astype(np.uint8),
        slots=host.astype(np.int32),
        forwards=~attached,
        guid=np.zeros(n, np.uint64),
        lid=np.zeros(n, np.int32),
        links=Links.of(source, target, arcs[:, 2] * rate),
    )


LIBTOPOMAP = Format(
    "libtopomap",
    kind="fabric",
    evidence="public",
    about="map file of LibTopoMap, with or without weights",
    recognise=_recognise_libtopomap,
    parse=_parse_libtopomap,
)
