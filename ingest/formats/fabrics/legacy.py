"""Networks of past machines: LibTopoMap's map files, BlueGene/P and Myrinet."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Sequence

import numpy as np

from ingest.formats.fabrics.draft import Draft, Position, attached_to_one, grid_links
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


BLUEGENE_RATE = 425e6
"""Default bytes/s of a link in each direction."""
MAX_SIZE = 1 << 12

_PARTITION = re.compile(
    r"#\s*xSize=(\d{1,5}) ySize=(\d{1,5}) zSize=(\d{1,5}) tSize=(\d{1,5})"
    r" xTorus=([01]) yTorus=([01]) zTorus=([01])(?: tTorus=[01])?\s*",
    re.ASCII,
)
_ROW = re.compile(r"\s*" + r"\s+".join([r"(\d{1,9})"] * 5) + r"\s*", re.ASCII)


def _recognise_bluegene_p(head: str, path: str) -> bool:
    """Return True if one of the first lines contains the sizes and flags."""
    return any(_PARTITION.fullmatch(line.rstrip("\r")) for line in head.split("\n", 50)[:50])


def _parse_bluegene_p(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the partition's nodes and links; a rank outside the sizes or a missing one is an error."""
    (file,) = files
    sizes: tuple[int, ...] = ()
    wrap: tuple[bool, ...] = ()
    cores: Counter[Position] = Counter()
    ranks: dict[int, Place] = {}
    taken: set[Position] = set()
    for place in file.places():
        line = place.text
        if (head := _PARTITION.fullmatch(line)) is not None:
            if sizes:
                raise place.error("sizes and torus flags are repeated")
            sizes = tuple(int(digits) for digits in head.groups()[:4])
            wrap = tuple(flag == "1" for flag in head.groups()[4:])
            if not all(0 < size <= MAX_SIZE for size in sizes):
                raise place.error(f"a size is not from 1 to {MAX_SIZE}")
        elif line.strip() and not line.lstrip().startswith("#"):
            rank, at = _row(line, sizes, place)
            if rank in ranks or at in taken:
                raise place.error("the rank or the core is repeated")
            ranks[rank] = place
            taken.add(at)
            cores[at[:3]] += 1
    if not ranks or max(ranks) != len(ranks) - 1:
        raise InputError("ranks are missing: the file seems truncated", path=file.path)
    return _torus(file.path, cores, sizes, wrap, options)


def _row(line: str, sizes: tuple[int, ...], place: Place) -> tuple[int, Position]:
    row = _ROW.fullmatch(line)
    if row is None or not sizes:
        raise place.error("expected 'rank x y z t' after the sizes and torus flags")
    rank, *at = (int(digits) for digits in row.groups())
    if any(value >= size for value, size in zip(at, sizes, strict=True)):
        raise place.error("a coordinate is not below its size")
    return rank, tuple(at)


def _torus(
    path: str, cores: Counter[Position], sizes: tuple[int, ...], wrap: Sequence[bool], options: Options
) -> Parsed:
    """Return the fabric of the nodes and their cores."""
    draft = Draft()
    for at, slots in cores.items():
        draft.host(_name(at), Place(path), slots=slots, forwards=True, coordinates=at)
    for a, b in grid_links(list(cores), sizes[:3], wrap):
        draft.cable(_name(a), _name(b))
    missing = math.prod(sizes[:3]) - len(cores)
    notes = counted(
        (
            missing,
            "node of the partition has",
            "nodes of the partition have",
            "no rank: links there are ignored",
        )
    )
    return draft.parsed(path, options, default_rate=BLUEGENE_RATE, warnings=notes)


def _name(at: Position) -> str:
    return "x{}y{}z{}".format(*at)


BLUEGENE_P = Format(
    "bluegene-p",
    kind="fabric",
    evidence="own",
    about="BlueGene/P partition: sizes, torus flags and the coordinates of each rank",
    recognise=_recognise_bluegene_p,
    parse=_parse_bluegene_p,
)
"""Coordinates of a BlueGene/P partition: one row ``rank x y z t`` per rank after the sizes and torus flags.

BlueGene writes no such file: this project defines the format for programs that print the result of
``DCMF_Messager_rank2torus`` and the fields ``xSize .. tSize`` and ``xTorus .. tTorus`` of
``DCMF_Hardware_t``. A node is a host that forwards, with ``t`` as its cores (slots). Links connect neighbours
along x, y and z; only axes with torus flag 1 wrap. (LibTopoMap wraps all axes regardless of the flags.)
``tTorus`` concerns the cores of a node and no cable.

A link of BlueGene/P carries 425e6 bytes/s in each direction: IBM's Blue Gene team, "Overview of the IBM
Blue Gene/P project", IBM J. Res. & Dev. 52 (2008).
"""


_END = r"(\d{1,5})\.(\d{1,3})"
_HOST = re.compile(rf"\s*(\d{{1,7}})\s+([A-Za-z0-9_.-]+)\s+{_END}\s*", re.ASCII)
_CABLE = re.compile(rf"\s*switch\s+{_END}\s+{_END}\s*", re.ASCII)
_SEARCH = re.compile(r"\s*search(\s+\d{1,5})++\s*", re.ASCII)

End = tuple[int, int]


def _recognise_myrinet_pm(head: str, path: str) -> bool:
    """Return True if there is a cable between switches, and all whole lines are of the format."""
    lines = [line.split("#", 1)[0].rstrip("\r") for line in head.split("\n")[:-1] or [head]]
    given = [line for line in lines if line.strip()]
    patterns = (_HOST, _CABLE, _SEARCH)
    return any(_CABLE.fullmatch(line) for line in given) and all(
        any(pattern.fullmatch(line) for pattern in patterns) for line in given
    )


def _parse_myrinet_pm(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one configuration; a missing number of a host is an error."""
    (file,) = files
    draft = Draft()
    taken: dict[End, Place] = {}
    numbers: set[int] = set()
    searches = 0
    for place in file.places():
        bare = place.text.split("#", 1)[0]
        if (host := _HOST.fullmatch(bare)) is not None:
            if int(host[1]) in numbers or host[2] in draft.vertices:
                raise place.error("the host or its number is repeated")
            numbers.add(int(host[1]))
            switch, port = _end(host[3], host[4], taken, draft, place)
            draft.host(host[2], place)
            draft.cable(f"switch{switch}", host[2], a_port=port)
        elif (cable := _CABLE.fullmatch(bare)) is not None:
            a = _end(cable[1], cable[2], taken, draft, place)
            b = _end(cable[3], cable[4], taken, draft, place)
            draft.cable(f"switch{a[0]}", f"switch{b[0]}", a_port=a[1], b_port=b[1])
        elif _SEARCH.fullmatch(bare) is not None:
            searches += 1
        elif bare.strip():
            raise place.error("expected a host, a cable of a switch or a search line")
    if not numbers or max(numbers) != len(numbers) - 1:
        raise InputError("host numbers are missing: the file seems truncated", path=file.path)
    notes = counted((searches, "search line is", "search lines are", "ignored"))
    return draft.parsed(file.path, options, warnings=notes)


def _end(switch: str, port: str, taken: dict[End, Place], draft: Draft, place: Place) -> End:
    """Return a port of a switch; raise `InputError` if it is in use."""
    end = int(switch), int(port)
    if end in taken:
        raise place.error(f"port {end[0]}.{end[1]} already has a cable in line {taken[end].line}")
    taken[end] = place
    draft.switch(f"switch{end[0]}", place)
    return end


MYRINET_PM = Format(
    "myrinet-pm",
    kind="fabric",
    evidence="public",
    about="Myrinet: configuration of SCore's PM-II",
    recognise=_recognise_myrinet_pm,
    parse=_parse_myrinet_pm,
)
"""Myrinet in SCore's PM-II configuration: hosts on switch ports, and cables between ports.

A line is ``number host switch.port`` for a host, ``switch a.p b.q`` for a cable, or ``search ...`` for the
order in which routes are searched, which is ignored. ``#`` begins a comment. Switches have numbers, and are
named ``switch0``, ``switch1``, ... here.

The output of Myricom's ``fm_db2wirelist`` is not read, since its syntax is not public. Source: the
documentation of SCore's PM-II.
"""
