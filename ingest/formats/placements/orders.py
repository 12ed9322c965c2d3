"""Functions for all parsers of placements."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import HostOrder

HOST = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
"""Pattern of a host's name in a launcher's file."""
MAX_RANKS = 1 << 24


class RankHost(NamedTuple):
    """A rank and its host, with the number and text of the line in the file.

    In a file that may repeat a report, `binding` is what must be the same in each, and `part` what the line
    belongs to, such as a process or a host's block: a rank is once in each part.
    """

    rank: int
    host: str
    line: int
    text: str | None = None
    binding: str = ""
    part: str = ""


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


def kind_of(line: str, kinds: Sequence[re.Pattern[str]]) -> re.Pattern[str] | None:
    """Return the first pattern that a line matches."""
    return next((kind for kind in kinds if kind.fullmatch(line)), None)


def lines_of_one_kind(
    file: SourceFile, kinds: Sequence[re.Pattern[str]], expected: str
) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the number and match of each line with content; all must be of the kind of the first line.

    Raises
    ------
    InputError
        The first line is of no kind (it is not what is `expected`), or a line is of another kind.
    """
    kind: re.Pattern[str] | None = None
    for number, line in significant(file):
        kind = kind or kind_of(line, kinds)
        found = kind.fullmatch(line) if kind else None
        if found is None:
            reason = f"expected {expected}" if kind is None else "not of the first line's kind"
            raise InputError(reason, path=file.path, line=number, text=line)
        yield number, found


def placement(hosts: Sequence[str], file: SourceFile, format: str) -> Parsed:
    """Return the placement of ranks 0, 1, ... on these hosts; raise `InputError` if there are none."""
    if not hosts:
        raise InputError("no ranks found", path=file.path)
    return Parsed(placements=(HostOrder(hosts=tuple(hosts), source=format, name=file.path),))


def placement_by_rank(
    rows: Iterable[RankHost], file: SourceFile, format: str, *, repeats: bool = False
) -> Parsed:
    """Return a placement from ranks in any order.

    Parameters
    ----------
    rows : iterable of RankHost
    file : SourceFile
        File of the rows, for errors.
    format : str
        Name of the format.
    repeats : bool
        True to accept a rank again in another part, on the same host with the same binding.

    Raises
    ------
    InputError
        There are no ranks, or a rank is repeated or missing.
    """
    found: dict[int, RankHost] = {}
    parts: set[tuple[int, str]] = set()
    for row in rows:
        first = found.setdefault(row.rank, row)
        same = (first.host, first.binding) == (row.host, row.binding) and (row.rank, row.part) not in parts
        parts.add((row.rank, row.part))
        if first is not row and not (repeats and same):
            reason = f"rank {row.rank} is repeated on {row.host}, first in line {first.line} on {first.host}"
            raise InputError(reason, path=file.path, line=row.line, text=row.text)
    ranks = max(found, default=-1) + 1
    if ranks > len(found):
        missing = next(rank for rank in range(ranks) if rank not in found)
        reason = f"{ranks - len(found)} of {ranks} ranks are missing, rank {missing} first"
        raise InputError(reason, path=file.path, line=found[ranks - 1].line)
    return placement([found[rank].host for rank in range(ranks)], file, format)


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
    given = tuple(zip(options.hosts, counts, strict=True))
    if not given and not listed:
        reason = "contains no hosts: give them with --hosts, and --slots if a host has more than one rank"
        raise InputError(reason, path=file.path)
    if given and listed and given != tuple(listed):
        raise InputError("the hosts or slots in the file differ from those given", path=file.path)
    return tuple(host for host, count in given or listed for _ in range(count))
