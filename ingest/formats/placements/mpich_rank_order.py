"""A placement as MPICH_RANK_ORDER of HPE Cray MPICH lists it: the rank of each slot, hosts one after the
other.

Ranks and ranges of ranks (``0-3``) between commas, blanks or line ends; ``#`` begins a comment. The list says
which ranks share the first host's slots, then the second's, and not which hosts these are: a comment ``#
hosts a*2 b*2``, which `mapping.launchers.mpich_rank_order` writes, says it, or else the caller (``almanac
ingest --hosts``). Other lists of launchers tell the host of each rank: this is their inverse. Source: HPE's
documentation of MPICH_RANK_REORDER_METHOD, and what its grid_order printed, as published.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ingest.formats.placements.orders import HOST, MAX_RANKS, Seat, by_rank, filled, significant
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

FORMAT = "mpich-rank-order"
_LIST = re.compile(r"\d{1,8}(?:-\d{1,8})?(?:(?:\s*,\s*|\s+)\d{1,8}(?:-\d{1,8})?)*\s*,?", re.A)
_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.A)
_HOSTS = re.compile(r"#\s*hosts((?:\s+" + HOST + r"\*\d{1,8})+)\s*", re.A)
_SLOTS = re.compile(r"(\S+)\*(\d+)", re.A)


def recognise(head: str, path: str) -> bool:
    """Whether all lines are lists between commas, and no rank stands twice among the first ones.

    A matrix of numbers has some number twice, if only on its diagonal.
    """
    lines = head.split("\n")
    texts = [line.partition("#")[0].strip() for line in (lines[:-1] if len(lines) > 1 else lines)]
    texts = [text for text in texts if text]
    if not texts or not any("," in text or "-" in text for text in texts):
        return False
    if not all(_LIST.fullmatch(text) for text in texts):
        return False
    ends = [int(digits) for text in texts for digits in re.findall(r"\d+", text, re.A)]
    return len(set(ends)) == len(ends)


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The hosts of the ranks of one file.

    Raises
    ------
    InputError
        A line that is no list, a rank twice or missing, more ranks than slots, hosts that nobody tells or
        that the file and the caller tell differently.
    """
    (file,) = files
    told = _hosts(file)
    slots = filled(file, options, told)
    seats: dict[int, Seat] = {}
    for line, rank in _ranks(file):
        if rank in seats:
            reason = f"rank {rank} has two slots, the first in line {seats[rank].line}"
            raise InputError(reason, path=file.path, line=line)
        if len(seats) == len(slots):
            reason = f"more ranks than the {len(slots)} slots of the hosts"
            raise InputError(reason, path=file.path, line=line)
        seats[rank] = Seat(slots[len(seats)], line)
    return Parsed(placement=by_rank(seats, file, FORMAT))


def _ranks(file: SourceFile) -> Iterator[tuple[int, int]]:
    """Line and rank of each slot."""
    for number, text in significant(file):
        if _LIST.fullmatch(text) is None:
            raise InputError("no list of ranks between commas", path=file.path, line=number, text=text)
        for found in _RANGE.finditer(text):
            first, last = int(found[1]), int(found[2] or found[1])
            if last < first or last >= MAX_RANKS:
                raise InputError("not a range of ranks", path=file.path, line=number, text=found[0])
            yield from ((number, rank) for rank in range(first, last + 1))


def _hosts(file: SourceFile) -> tuple[tuple[str, int], ...]:
    """Hosts and slots that a comment tells; none where there is no such comment."""
    for number, line in enumerate(file.lines(), start=1):
        found = _HOSTS.fullmatch(line.strip())
        if found is not None:
            hosts = tuple((host, int(count)) for host, count in _SLOTS.findall(found[1]))
            if sum(count for _, count in hosts) > MAX_RANKS:
                raise InputError(f"more than {MAX_RANKS} slots", path=file.path, line=number, text=line)
            return hosts
    return ()
