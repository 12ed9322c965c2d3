"""Functions for all parsers of placements."""

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


class RankHost(NamedTuple):
    """Host of a rank, with the line of the file."""

    host: str
    line: int


def significant(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines with content, without comments and outer blanks."""
    for number, line in enumerate(file.lines(), start=1):
        text = line.partition("#")[0].strip()
        if text:
            yield number, text


def head_lines(head: str, limit: int = 100) -> list[str]:
    """Return the first lines with content, without comments and outer blanks."""
    texts = (line.partition("#")[0].strip() for line in head.split("\n"))
    return list(itertools.islice((text for text in texts if text), limit))


def by_rank(hosts_of_ranks: Mapping[int, RankHost], file: SourceFile, format: str) -> HostOrder:
    """Return the hosts of ranks 0, 1, ...

    Raises
    ------
    InputError
        There are no ranks, or a rank is missing.
    """
    if not hosts_of_ranks:
        raise InputError("no ranks found", path=file.path)
    ranks = max(hosts_of_ranks) + 1
    if ranks > len(hosts_of_ranks):
        first = next(rank for rank in range(ranks) if rank not in hosts_of_ranks)
        last = hosts_of_ranks[ranks - 1].line
        reason = f"{ranks - len(hosts_of_ranks)} of {ranks} ranks are missing, rank {first} first"
        raise InputError(reason, path=file.path, line=last)
    return HostOrder(hosts=tuple(hosts_of_ranks[rank].host for rank in range(ranks)), source=format)


def filled(file: SourceFile, options: Options, listed: Sequence[tuple[str, int]] = ()) -> tuple[str, ...]:
    """Return the host of each slot, hosts in the order in which a launcher fills them.

    Parameters
    ----------
    file : SourceFile
        The file, for errors.
    options : Options
        Hosts and slots given by the caller.
    listed : sequence of (host, slots)
        Hosts and slots in the file; empty if it has none.

    Raises
    ------
    InputError
        Neither the file nor the caller has hosts, or both do and differ.
    """
    counts = options.slots * len(options.hosts) if len(options.slots) == 1 else options.slots
    asked = tuple(zip(options.hosts, counts, strict=True))
    if not asked and not listed:
        reason = "contains no hosts: give them with --hosts, and --slots if a host has more than one rank"
        raise InputError(reason, path=file.path)
    if asked and listed and asked != tuple(listed):
        raise InputError("the hosts or slots in the file differ from those given", path=file.path)
    return tuple(host for host, count in asked or listed for _ in range(count))
