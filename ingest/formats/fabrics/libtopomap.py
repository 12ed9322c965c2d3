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
from collections.abc import Sequence

import numpy as np

from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import HOST, SWITCH, Fabric, Links, Longs

DEFAULT_RATE = 1.0
"""Default bytes/s of a cable of weight 1."""
MAX_VERTICES = 1 << 24

_HEAD = re.compile(r"num:\s*(\d{1,9})\s*(w?)\s*")
_NAME = re.compile(r"(\d{1,9})[ \t]+(\S.*)")
_NEIGHBOURS = re.compile(r"(\d{1,9})((?:[ \t]+\d{1,9})*)\s*")
_WEIGHTED = re.compile(r"(\d{1,9})((?:[ \t]+\d{1,9}\(\d{1,12}\))*)\s*")
_EDGE = re.compile(r"(\d+)(?:\((\d+)\))?")


def recognise(head: str, path: str) -> bool:
    """Return True if the first line is that of the format."""
    return _HEAD.fullmatch(head.split("\n", 1)[0].rstrip("\r")) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Read one map.

    Raises
    ------
    InputError
        An unreadable line, a repeated vertex or name, a neighbour that is no vertex, a weight of 0, or a
        truncated file.
    """
    (file,) = files
    reader = _Reader(file)
    count, weighted = reader.head()
    names = reader.names(count)
    arcs = reader.arcs(count, weighted)
    arcs, warnings = _both_directions(arcs)
    if not len(arcs):
        raise InputError("the map has no edges", path=file.path)
    rate = options.rate
    if rate is None:
        rate = DEFAULT_RATE
        warnings.append("the map contains no rates: 1 byte/s per cable is assumed, so seconds are bytes")
    fabric = _fabric(names, arcs, rate)
    assumed = np.full(len(fabric.links), options.rate is None)
    return Parsed(fabric=fabric, assumed=assumed, warnings=tuple(warnings))


class _Reader:
    """The lines of a map, with errors that name them."""

    def __init__(self, file: SourceFile) -> None:
        self.path = file.path
        self.lines = file.lines()
        while self.lines and not self.lines[-1].strip():
            self.lines.pop()

    def head(self) -> tuple[int, bool]:
        """Return the number of vertices, and True if edges have weights."""
        match = _HEAD.fullmatch(self.lines[0])
        if match is None or not 0 < int(match[1]) <= MAX_VERTICES:
            raise self._error("expected 'num: N' with N vertices", 1)
        count = int(match[1])
        if len(self.lines) != 2 * count + 1:
            reason = f"{count} vertices need {2 * count + 1} lines, the file has {len(self.lines)}"
            raise InputError(reason, path=self.path, line=len(self.lines))
        return count, bool(match[2])

    def names(self, count: int) -> tuple[str, ...]:
        """Return the name of each vertex."""
        names: dict[int, str] = {}
        seen: set[str] = set()
        for line in range(2, count + 2):
            match = _NAME.fullmatch(self.lines[line - 1])
            if match is None:
                raise self._error("expected 'vertex name'", line)
            vertex = self._vertex(match[1], count, names, line)
            name = match[2].rstrip()
            if name in seen:
                raise self._error(f"two vertices are named {name!r}", line)
            seen.add(name)
            names[vertex] = name
        return tuple(names[vertex] for vertex in range(count))

    def arcs(self, count: int, weighted: bool) -> Longs:
        """Return the source, target and weight of each edge as listed (int64[arcs, 3])."""
        rows: list[tuple[int, int, int]] = []
        seen: dict[int, str] = {}
        pattern = _WEIGHTED if weighted else _NEIGHBOURS
        for line in range(count + 2, 2 * count + 2):
            match = pattern.fullmatch(self.lines[line - 1])
            if match is None:
                edges = "neighbour(weight) ..." if weighted else "neighbour ..."
                raise self._error(f"expected 'vertex {edges}'", line)
            source = self._vertex(match[1], count, seen, line)
            seen[source] = ""
            for edge in _EDGE.finditer(match[2]):
                target, weight = int(edge[1]), int(edge[2] or 1)
                if target >= count or weight == 0:
                    wrong = f"the neighbour {target} is no vertex" if weight else "an edge has weight 0"
                    raise self._error(wrong, line)
                rows.append((source, target, weight))
        return np.array(rows, np.int64).reshape(-1, 3)

    def _vertex(self, digits: str, count: int, seen: dict[int, str], line: int) -> int:
        vertex = int(digits)
        if vertex >= count:
            raise self._error(f"vertex {vertex} is not below {count}", line)
        if vertex in seen:
            raise self._error(f"vertex {vertex} is repeated", line)
        return vertex

    def _error(self, reason: str, line: int) -> InputError:
        return InputError(reason, path=self.path, line=line, text=self.lines[line - 1])


def _both_directions(arcs: Longs) -> tuple[Longs, list[str]]:
    """Return the arcs without loops, mirrored if the whole map lists each edge once, and warnings."""
    warnings = []
    loops = arcs[:, 0] == arcs[:, 1]
    if loops.any():
        warnings.append(f"{int(loops.sum())} edge(s) lead from a vertex to itself and are ignored")
        arcs = arcs[~loops]
    pairs = {(int(source), int(target)) for source, target, _ in arcs}
    single = sum((target, source) not in pairs for source, target in pairs)
    if pairs and single == len(pairs):
        warnings.append("the map lists each edge once: the other direction is added")
        arcs = np.concatenate([arcs, arcs[:, [1, 0, 2]]])
    elif single:
        warnings.append(f"{single} edge(s) are listed in one direction only and stay one-way")
    return arcs, warnings


def _fabric(names: tuple[str, ...], arcs: Longs, rate: float) -> Fabric:
    """Return the fabric of the arcs."""
    n = len(names)
    order = sorted(range(n), key=names.__getitem__)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    source, target = rank[arcs[:, 0]], rank[arcs[:, 1]]
    ends = np.unique(np.concatenate([source * n + target, target * n + source]))
    hanging = np.bincount(ends // n, minlength=n) == 1
    direct = not hanging.any() or bool(hanging.all())
    host = np.ones(n, np.bool_) if direct else hanging
    return Fabric(
        names=tuple(names[vertex] for vertex in order),
        kind=np.where(host, HOST, SWITCH).astype(np.uint8),
        slots=host.astype(np.int32),
        forwards=np.ones(n, np.bool_) if direct else ~hanging,
        guid=np.zeros(n, np.uint64),
        lid=np.zeros(n, np.int32),
        links=Links.of(source, target, arcs[:, 2] * rate),
    )
