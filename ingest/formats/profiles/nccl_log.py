"""Communication over all nodes as planned by NCCL: the log of ``NCCL_DEBUG=INFO``.

    node1:50292:50292 [0] NCCL INFO Channel 00/02 : 0 1 2 3
    node1:50292:50292 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1

``Channel c/n`` is the ring of channel c, printed by rank 0: every rank sends to the next one, the last to the
first. ``Trees`` lists for each channel up to three children of the printing rank, the rank, and its parent;
-1 means none. The log contains no bytes: every channel is taken as one byte along each of its links, in the
direction of a ring, or both ways in a tree. Rings are read, or trees with `Options.collectives` ``tree``. The
ranks are those of one communicator: a log of several communicators with different rings is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ingest.formats.profiles.shared import MAX_RANKS, missing_ranks, profile_of
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Profile

FORMAT = "nccl-log"
_RING = re.compile(r"NCCL INFO Channel (\d{1,4})/(\d{1,4}) :((?: +\d{1,8})++)\s*$")
_TREES = re.compile(r"NCCL INFO Trees ((?:\[\d{1,4}\] \S{1,80}\s*)++)$")
_TREE = re.compile(r"\[(\d{1,4})\] (-?\d{1,8})/(-?\d{1,8})/(-?\d{1,8})->(\d{1,8})->(-?\d{1,8})")


def recognise(head: str, path: str) -> bool:
    """Return True if the text is a log of NCCL; its rings may follow later."""
    return (
        "\0" not in head
        and "NCCL INFO " in head
        and re.search(r":\d+:\d+ \[\d+\] NCCL INFO ", head) is not None
    )


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the profile of one communicator.

    A ring that repeats a rank, a tree whose ends contradict each other, a channel with different ranks of two
    communicators, and ranks without their lines of trees, are errors.
    """
    (file,) = files
    kind = channel_kind(file, options)
    links = _rings(file) if kind == "ring" else _trees(file, options)
    if not links:
        raise InputError(f"no line of a {kind} found", path=file.path)
    ranks = 1 + max(max(pair) for pair in links)
    note = f"NCCL's log has no bytes: one byte along each link of each {kind} is assumed"
    return Parsed(profiles=(links_profile(links, ranks, FORMAT, file, options),), warnings=(note,))


def channel_kind(file: SourceFile, options: Options) -> str:
    """Return the requested kind of channels, ``ring`` or ``tree``; NCCL plans no others."""
    if options.collectives not in ("ring", "tree"):
        raise InputError(f"contains rings and trees, not {options.collectives}", path=file.path)
    return options.collectives


def links_profile(
    links: Sequence[tuple[int, int]], ranks: int, format: str, file: SourceFile, options: Options
) -> Profile:
    """Return a profile of one byte and one message along each link; repeated links are summed."""
    ones = [1] * len(links)
    edges = [one for one, _ in links], [other for _, other in links], ones, ones
    return profile_of(edges, ranks, file.path, f"{format}, {options.collectives}s", options)


def _rings(file: SourceFile) -> list[tuple[int, int]]:
    """Return the links of the rings."""
    rings: dict[int, tuple[int, ...]] = {}
    for number, line in enumerate(file.lines(), start=1):
        found = _RING.search(line)
        if found is None:
            continue
        ring = tuple(map(int, found[3].split()))
        if len(set(ring)) != len(ring) or max(ring) >= MAX_RANKS:
            raise InputError("a ring repeats a rank", path=file.path, line=number, text=line)
        if rings.setdefault(int(found[1]), ring) != ring:
            raise _several(file, number, line)
    if len({frozenset(ring) for ring in rings.values()}) > 1:
        raise InputError("its rings have different ranks: is a line truncated?", path=file.path)
    return [
        (one, other)
        for ring in rings.values()
        for one, other in zip(ring, ring[1:] + ring[:1], strict=True)
        if one != other
    ]


def _trees(file: SourceFile, options: Options) -> list[tuple[int, int]]:
    """Return the links from each rank to its parent and its children; each is listed at both ends."""
    known: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {}
    for number, line in enumerate(file.lines(), start=1):
        for channel, rank, parent, children in _trees_of_line(line, file, number):
            if known.setdefault((channel, rank), (parent, children)) != (parent, children):
                raise _several(file, number, line)
    ranks = {rank for _, rank in known}
    links: list[tuple[int, int]] = []
    named: set[int] = set()
    for (channel, rank), (parent, children) in known.items():
        for child in children:
            other = known.get((channel, child))
            if other is not None and other[0] != rank:
                reason = f"rank {rank} and its child {child} contradict each other in channel {channel}"
                raise InputError(reason, path=file.path)
            links += [(rank, child), (child, rank)]
        above = known.get((channel, parent))
        if parent >= 0 and (above is None or rank not in above[1]):
            if above is not None:
                reason = f"rank {rank} and its parent {parent} contradict each other in channel {channel}"
                raise InputError(reason, path=file.path)
            links += [(rank, parent), (parent, rank)]
        named.update(other for other in (parent, *children) if other >= 0)
    missing_ranks(ranks, sorted(named | ranks), file.path, options)
    return links


def _trees_of_line(
    line: str, file: SourceFile, number: int
) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    """Yield the channel, rank, parent and children of each tree in a line."""
    found = _TREES.search(line)
    if found is None:
        return
    trees = list(_TREE.finditer(found[1]))
    if len(trees) != found[1].count("["):
        raise InputError("a tree is invalid or truncated", path=file.path, line=number, text=line)
    for tree in trees:
        channel, *children, rank, parent = map(int, tree.groups())
        around = (*(child for child in children if child >= 0), *([parent] if parent >= 0 else []))
        if len({rank, *around}) != len(around) + 1 or max(rank, *around, 0) >= MAX_RANKS:
            raise InputError("a tree repeats a rank", path=file.path, line=number, text=line)
        yield channel, rank, parent, tuple(child for child in children if child >= 0)


def _several(file: SourceFile, number: int, line: str) -> InputError:
    reason = "a channel has different ranks: the log has several communicators, ingest only one of them"
    return InputError(reason, path=file.path, line=number, text=line)
