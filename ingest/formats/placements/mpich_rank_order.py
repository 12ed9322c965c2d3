"""A placement as MPICH_RANK_ORDER of HPE Cray MPICH: the rank of each slot, hosts in order.

The file has ranks and ranges of ranks (``0-3``) separated by commas, blanks or line ends; ``#`` begins a
comment. It lists the ranks for the slots of the first host, then of the second, but not the hosts: these are
in a comment ``# hosts a*2 b*2``, which `mapping.launchers` writes, or must be given with
``almanac ingest --hosts``. Other launchers' lists contain the host of each rank; this is their inverse.
Source: HPE's documentation of MPICH_RANK_REORDER_METHOD, and published output of its grid_order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ingest.formats.placements.orders import HOST, MAX_RANKS, RankHost, filled, placement_by_rank, significant
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

_LIST = re.compile(r"\d{1,8}(?:-\d{1,8})?(?:(?:\s*,\s*|\s+)\d{1,8}(?:-\d{1,8})?)*+\s*,?", re.A)
_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.A)
_HOSTS = re.compile(r"#\s*hosts((?:\s+" + HOST + r"\*\d{1,8})++)\s*", re.A)
_SLOTS = re.compile(r"(\S+)\*(\d+)", re.A)


def _recognise_mpich_rank_order(head: str, path: str) -> bool:
    """Return True if all lines are lists of ranks, and no rank is repeated among the first ones.

    A matrix of numbers repeats some number, at least on its diagonal.
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


def _parse_mpich_rank_order(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the hosts of the ranks of one file.

    More ranks than slots, and other hosts in the file than those given by the caller, are errors.
    """
    (file,) = files
    return placement_by_rank(_rows(file, filled(file, options, _hosts(file))), file, MPICH_RANK_ORDER.name)


def _rows(file: SourceFile, slots: Sequence[str]) -> Iterator[RankHost]:
    """Yield the rank of each slot with the host of the slot."""
    free = iter(slots)
    for number, text in significant(file):
        if _LIST.fullmatch(text) is None:
            reason = "expected a list of ranks separated by commas"
            raise InputError(reason, path=file.path, line=number, text=text)
        for found in _RANGE.finditer(text):
            first, last = int(found[1]), int(found[2] or found[1])
            if last < first or last >= MAX_RANKS:
                raise InputError("invalid range of ranks", path=file.path, line=number, text=found[0])
            for rank in range(first, last + 1):
                host = next(free, None)
                if host is None:
                    reason = f"more ranks than slots of the hosts ({len(slots)})"
                    raise InputError(reason, path=file.path, line=number)
                yield RankHost(rank, host, number)


def _hosts(file: SourceFile) -> tuple[tuple[str, int], ...]:
    """Return the hosts and slots in a comment; empty if there is no such comment."""
    for number, line in enumerate(file.lines(), start=1):
        found = _HOSTS.fullmatch(line.strip())
        if found is not None:
            hosts = tuple((host, int(count)) for host, count in _SLOTS.findall(found[1]))
            if sum(count for _, count in hosts) > MAX_RANKS:
                raise InputError(f"more than {MAX_RANKS} slots", path=file.path, line=number, text=line)
            return hosts
    return ()


MPICH_RANK_ORDER = Format(
    "mpich-rank-order",
    kind="placement",
    evidence="public",
    about="placement: MPICH_RANK_ORDER of HPE Cray MPICH; needs --hosts",
    recognise=_recognise_mpich_rank_order,
    parse=_parse_mpich_rank_order,
)
