"""What the readers of placements share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ingest.options import Options
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import HostOrder

HOST = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
"""Pattern of a host's name in a launcher's file."""
MAX_RANKS = 1 << 24


class Seat(NamedTuple):
    """Where a file seats a rank."""

    host: str
    line: int


def significant(file: SourceFile) -> Iterator[tuple[int, str]]:
    """The numbered lines that say something, without comments and outer blanks."""
    for number, line in enumerate(file.lines(), start=1):
        text = line.partition("#")[0].strip()
        if text:
            yield number, text


def head_lines(head: str, limit: int = 100) -> list[str]:
    """The first lines of a file's head that say something, without comments and outer blanks."""
    texts = (line.partition("#")[0].strip() for line in head.split("\n"))
    return list(itertools.islice((text for text in texts if text), limit))


def by_rank(seats: Mapping[int, Seat], file: SourceFile, format: str) -> HostOrder:
    """The hosts of ranks 0, 1, ... without a gap.

    Raises
    ------
    InputError
        No rank at all; a rank that is missing.
    """
    if not seats:
        raise InputError("places no rank", path=file.path)
    ranks = max(seats) + 1
    if ranks > len(seats):
        first = next(rank for rank in range(ranks) if rank not in seats)
        last = seats[ranks - 1].line
        reason = f"{ranks - len(seats)} of {ranks} ranks are missing, rank {first} first"
        raise InputError(reason, path=file.path, line=last)
    return HostOrder(hosts=tuple(seats[rank].host for rank in range(ranks)), source=format)


def filled(file: SourceFile, options: Options, told: Sequence[tuple[str, int]] = ()) -> tuple[str, ...]:
    """The host of each slot, hosts in the order in which a launcher fills them.

    Parameters
    ----------
    file : SourceFile
        For errors.
    options : Options
        The caller's hosts and slots.
    told : sequence of (host, slots)
        What the file itself says; empty where it says nothing.

    Raises
    ------
    InputError
        Nobody tells the hosts, or both do and differ.
    """
    counts = options.slots * len(options.hosts) if len(options.slots) == 1 else options.slots
    asked = tuple(zip(options.hosts, counts, strict=True))
    if not asked and not told:
        reason = "tells no hosts: give them with --hosts, and --slots where a host takes more than one rank"
        raise InputError(reason, path=file.path)
    if asked and told and asked != tuple(told):
        raise InputError("names other hosts or slots than were asked for", path=file.path)
    return tuple(host for host, count in asked or told for _ in range(count))
