"""Coordinates of a BlueGene/P partition: one row ``rank x y z t`` per rank after the sizes and torus flags.

BlueGene writes no such file: this project defines the format for programs that print the result of
``DCMF_Messager_rank2torus`` and the fields ``xSize .. tSize`` and ``xTorus .. tTorus`` of
``DCMF_Hardware_t``. A node is a host that forwards, with ``t`` as its cores (slots). Links connect neighbours
along x, y and z; only axes with torus flag 1 wrap. (LibTopoMap wraps all axes regardless of the flags.)
``tTorus`` concerns the cores of a node and no cable.

A link of BlueGene/P carries 425e6 bytes/s in each direction: IBM's Blue Gene team, "Overview of the IBM
Blue Gene/P project", IBM J. Res. & Dev. 52 (2008).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from ingest.formats.fabrics.draft import Draft, Position, grid_links
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.source import Place, SourceFile
from registry.errors import InputError

DEFAULT_RATE = 425e6
"""Default bytes/s of a link in each direction."""
MAX_SIZE = 1 << 12

_HEAD = re.compile(
    r"#\s*xSize=(\d{1,5}) ySize=(\d{1,5}) zSize=(\d{1,5}) tSize=(\d{1,5})"
    r" xTorus=([01]) yTorus=([01]) zTorus=([01])(?: tTorus=[01])?\s*",
    re.ASCII,
)
_ROW = re.compile(r"\s*" + r"\s+".join([r"(\d{1,9})"] * 5) + r"\s*", re.ASCII)


def _recognise_bluegene_p(head: str, path: str) -> bool:
    """Return True if one of the first lines contains the sizes and flags."""
    return any(_HEAD.fullmatch(line.rstrip("\r")) for line in head.split("\n", 50)[:50])


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
        if (head := _HEAD.fullmatch(line)) is not None:
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
    return _fabric(file.path, cores, sizes, wrap, options)


def _row(line: str, sizes: tuple[int, ...], place: Place) -> tuple[int, Position]:
    row = _ROW.fullmatch(line)
    if row is None or not sizes:
        raise place.error("expected 'rank x y z t' after the sizes and torus flags")
    rank, *at = (int(digits) for digits in row.groups())
    if any(value >= size for value, size in zip(at, sizes, strict=True)):
        raise place.error("a coordinate is not below its size")
    return rank, tuple(at)


def _fabric(
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
    return draft.parsed(path, options, default_rate=DEFAULT_RATE, warnings=notes)


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
