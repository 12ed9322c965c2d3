"""LLNL's ibtopo: a number of levels, then one line per host with its position in a tree.

Line 1 is the number of levels of switches. Each other line is ``host id_top .. id_leaf``: the number of the
root's child above the host, the number of that child's child, and so on. Switches have no names; they are
named here by their path, ``sw-0-3``. With 1 level all hosts with the same number share a leaf, and a root
connects the leaves. Source: published samples; the tool itself was not available.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.formats.fabrics.trees import Branch, tree
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import Place, SourceFile
from registry import units

MAX_LEVELS = 8
_ROW = re.compile(r"\s*(\S+)((?:[ \t]+\d{1,9})++)\s*", re.ASCII)
_HEAD = re.compile(rf"\s*([1-{MAX_LEVELS}])\s*", re.ASCII)

Way = tuple[int, ...]
"""Number of the child at each level, from the root."""


def _recognise_ibtopo(head: str, path: str) -> bool:
    """Return True if the first line is a number of levels and the next one a host with as many numbers."""
    lines = [line for line in head.split("\n", 2) if line.strip()]
    if len(lines) < 2 or (levels := _HEAD.fullmatch(lines[0])) is None:
        return False
    row = _ROW.fullmatch(lines[1])
    return row is not None and re.search(r"[A-Za-z]", row[1]) is not None and _fits(row, int(levels[1]))


def _parse_ibtopo(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one file."""
    (file,) = files
    head, *places = file.places()
    levels = _HEAD.fullmatch(head.text)
    if levels is None:
        raise head.error(f"expected a number of levels from 1 to {MAX_LEVELS}")
    hosts, first = _rows(places, int(levels[1]))
    below: dict[Way, dict[Way, None]] = {}
    for way in hosts:
        for depth in range(len(way)):
            below.setdefault(way[:depth], {})[way[: depth + 1]] = None
            first.setdefault(way[:depth], first[way])
    branches = {
        _name(way): Branch(
            place=place,
            switches=tuple(_name(child) for child in below.get(way, ())),
            hosts=tuple(hosts.get(way, ())),
        )
        for way, place in first.items()
        if way or len(below.get(way, ())) > 1
    }
    return tree(file.path, branches, options)


def _rows(places: Sequence[Place], levels: int) -> tuple[dict[Way, list[str]], dict[Way, Place]]:
    """Return the hosts at the end of each path, and the location of the first of them."""
    hosts: dict[Way, list[str]] = {}
    first: dict[Way, Place] = {}
    seen: set[str] = set()
    for place in places:
        if not place.text.strip():
            continue
        row = _ROW.fullmatch(place.text)
        if row is None or not _fits(row, levels):
            raise place.error(f"expected a host and {units.counted(levels, 'position')}")
        if row[1] in seen:
            raise place.error(f"the host {row[1]} is repeated")
        seen.add(row[1])
        way = tuple(int(digits) for digits in row[2].split())
        hosts.setdefault(way, []).append(row[1])
        first.setdefault(way, place)
    return hosts, first


def _fits(row: re.Match[str], levels: int) -> bool:
    return len(row[2].split()) == levels


def _name(way: Way) -> str:
    return "-".join(("sw", *map(str, way))) if way else "root"


IBTOPO = Format(
    "ibtopo",
    kind="fabric",
    evidence="public",
    about="tree of switches: LLNL's ibtopo, one line per host with its path",
    recognise=_recognise_ibtopo,
    parse=_parse_ibtopo,
)
