"""Communication as planned by NCCL."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from ingest.formats.profiles.shared import MAX_RANKS, missing_ranks, profile_of
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError, list_names
from registry.model import Profile

SHOWN = 20
"""Number of ranks of a ring that NCCL prints (``MAXWIDTH`` in its source)."""
_WIDTH = 1000
"""From this number of ranks on numbers of ranks overwrite each other in a printed ring."""
_RING = re.compile(r"NCCL INFO Channel (\d{1,4})/(\d{1,4}) :((?: +\d{1,8})++)\s*$")
_ONE_ONLY = "the log has several communicators, ingest only one of them"
_SIZE = re.compile(r"\bn[rR]anks (\d{1,8})\b")
_CONNECTION = re.compile(
    r"^(?:.*\s)?(\S+ \[\d+\]) NCCL INFO (?:Channel|Ring) (\d{1,4})(?:/0)? : "
    r"(\d{1,8})\[[0-9a-f]{1,16}\] -> (\d{1,8})\[[0-9a-f]{1,16}\]"
)
_CONNECTED = re.compile(r"^(?:.*\s)?(\S+ \[\d+\]) NCCL INFO Connected all rings")
_TREES = re.compile(r"NCCL INFO Trees ((?:\[\d{1,4}\] \S{1,80}\s*)++)$")
_TREE = re.compile(r"\[(\d{1,4})\] (-?\d{1,8})/(-?\d{1,8})/(-?\d{1,8})->(\d{1,8})->(-?\d{1,8})")


def _recognise_nccl_log(head: str, path: str) -> bool:
    """Return True if the text is a log of NCCL; its rings may follow later."""
    return (
        "\0" not in head
        and "NCCL INFO " in head
        and re.search(r":\d+:\d+ \[\d+\] NCCL INFO ", head) is not None
    )


def _parse_nccl_log(files: Sequence[SourceFile], options: Options) -> Parsed:
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
    return Parsed(profiles=(links_profile(links, ranks, NCCL_LOG.name, file, options),), warnings=(note,))


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


class _Rings(NamedTuple):
    """What a log contains about rings."""

    shown: dict[int, tuple[int, ...]]
    """Printed ranks of each channel."""
    sizes: set[int]
    """Numbers of ranks of the log's communicators."""
    next: dict[tuple[int, int], set[int]]
    """By channel and rank the ranks to which it connects in a ring."""


def _rings(file: SourceFile) -> list[tuple[int, int]]:
    """Return the links of the rings."""
    found = _read_rings(file)
    rings = [_whole(channel, found, file) for channel in found.shown]
    if len({frozenset(ring) for ring in rings}) > 1:
        raise InputError("its rings have different ranks: is a line truncated?", path=file.path)
    return [
        (one, other)
        for ring in rings
        for one, other in zip(ring, ring[1:] + ring[:1], strict=True)
        if one != other
    ]


def _read_rings(file: SourceFile) -> _Rings:
    """Return the rings as printed, and the connections of each rank until its rings are connected."""
    rings, connected = _Rings({}, set(), defaultdict(set)), set[str]()
    for number, line in enumerate(file.lines(), start=1):
        if found := _RING.search(line):
            ring = tuple(map(int, found[3].split()))
            if max(ring) >= MAX_RANKS or (len(ring) != SHOWN and len(set(ring)) != len(ring)):
                raise InputError("a ring repeats a rank", path=file.path, line=number, text=line)
            if rings.shown.setdefault(int(found[1]), ring) != ring:
                raise _several(file, number, line)
        elif found := _CONNECTION.search(line):
            if found[1] not in connected:
                rings.next[int(found[2]), int(found[3])].add(int(found[4]))
        elif found := _CONNECTED.search(line):
            connected.add(found[1])
        elif "NCCL INFO " in line and (found := _SIZE.search(line)):
            rings.sizes.add(int(found[1]))
    return rings


def _whole(channel: int, rings: _Rings, file: SourceFile) -> tuple[int, ...]:
    """Return all ranks of a channel's ring, in order."""
    shown, sizes = rings.shown[channel], rings.sizes
    if len(shown) == SHOWN and sizes != {SHOWN}:
        return _completed(channel, rings, file)
    if len(set(shown)) != len(shown):
        raise InputError(f"the ring of channel {channel} repeats a rank", path=file.path)
    if sizes and len(shown) not in sizes:
        reason = f"has {len(shown)} ranks, its communicator {max(sizes)}: is a line truncated?"
        raise InputError(f"the ring of channel {channel} {reason}", path=file.path)
    return shown


def _completed(channel: int, rings: _Rings, file: SourceFile) -> tuple[int, ...]:
    """Return the ring of a channel of which NCCL may have printed the beginning only."""
    shown = rings.shown[channel]
    printed = dict(pairwise(shown)) if max(rings.sizes, default=0) <= _WIDTH else {}
    order = dict.fromkeys(shown[:1])
    rank = shown[0]
    while True:
        onward = rings.next.get((channel, rank), set()) | ({printed[rank]} if rank in printed else set())
        if not onward:
            size = f" of {max(rings.sizes)}" if rings.sizes else ""
            reason = (
                f"NCCL prints only the first {SHOWN} ranks of a ring{size}, and to which one rank {rank} "
            )
            reason += (
                f"sends in channel {channel} is not in this log: put the lines of all ranks into one file"
            )
            raise InputError(reason, path=file.path)
        following = min(onward)
        if len(onward) > 1 or (following in order and following != shown[0]):
            several = f"several ranks follow or precede one rank in channel {channel}: {_ONE_ONLY}"
            raise InputError(several, path=file.path)
        if following == shown[0]:
            break
        order[rank := following] = None
    ring = tuple(order)
    if sorted(ring) != list(range(len(ring))) or (rings.sizes and len(ring) not in rings.sizes):
        sizes = list_names(sorted(map(str, rings.sizes)))
        reason = (
            f"the connections of channel {channel} close a ring of {len(ring)} ranks, not of {sizes or 'all'}"
        )
        raise InputError(f"{reason}: {_ONE_ONLY}", path=file.path)
    return ring


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
    return InputError(f"a channel has different ranks: {_ONE_ONLY}", path=file.path, line=number, text=line)


NCCL_LOG = Format(
    "nccl-log",
    kind="profile",
    evidence="public",
    about="profile: rings and trees over all nodes from the log of NCCL_DEBUG=INFO",
    recognise=_recognise_nccl_log,
    parse=_parse_nccl_log,
)
"""Communication over all nodes as planned by NCCL: the log of ``NCCL_DEBUG=INFO``.

    node1:50292:50292 [0] NCCL INFO Channel 00/02 : 0 1 2 3
    node1:50292:50292 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1

``Channel c/n`` is the ring of channel c, printed by rank 0: every rank sends to the next one, the last to the
first. NCCL prints at most 20 ranks of a ring; a longer one is completed by the connections that every rank
prints before it has ``Connected all rings`` (those after it are of trees), else it is rejected:

    node1:50293:50293 [1] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0

``Trees`` lists for each channel up to three children of the printing rank, the rank, and its parent;
-1 means none. The log contains no bytes: every channel is taken as one byte along each of its links, in the
direction of a ring, or both ways in a tree. Rings are read, or trees with `Options.collectives` ``tree``. The
ranks are those of one communicator: a log of several communicators with different rings is rejected.
"""


PATTERNS = {"4": "ring", "1": "tree", "2": "tree", "3": "tree"}
MOST = 1 << 12
"""Largest number of GPUs of a node."""


def _recognise_nccl_graph(head: str, path: str) -> bool:
    """Return True if the outermost element is ``graphs`` with NCCL's content."""
    begins = head.lstrip()[:300]
    return begins.startswith("<") and "<graphs" in begins and "<graph " in head and "nchannels=" in head


def _parse_nccl_graph(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the profile of one node; an element without its device, and a repeated GPU, are errors."""
    (file,) = files
    kind = channel_kind(file, options)
    links: list[tuple[int, int]] = []
    others = nets = chosen = 0
    highest = -1
    for pattern, gpus, devices in _channels(file):
        highest = max(highest, *gpus)
        if PATTERNS.get(pattern) != kind:
            others += 1
            continue
        chosen += 1
        nets += devices
        along = list(pairwise(gpus))
        if kind == "ring" and not devices and len(gpus) > 1:
            along.append((gpus[-1], gpus[0]))
        links += along
        if kind == "tree":
            links += [(below, above) for above, below in along]
    warnings = ["NCCL's graph has no bytes and one node: one byte per channel and link, GPU d as rank d"]
    if nets:
        warnings.append(f"{nets} links through network devices, to other nodes, are ignored")
    if others:
        warnings.append(f"{others} channels of other patterns than {kind}s are ignored")
    if not chosen:
        raise InputError(f"no channel is a {kind}", path=file.path)
    profile = links_profile(links, highest + 1, NCCL_GRAPH.name, file, options)
    return Parsed(profiles=(profile,), warnings=tuple(warnings))


def _channels(file: SourceFile) -> Iterator[tuple[str, list[int], int]]:
    """Yield the pattern, GPUs and number of network devices of each channel."""
    try:
        root: Element = fromstring(file.text(), forbid_dtd=True)
    except ParseError as error:
        line = error.position[0] if error.position else None
        raise InputError(f"invalid XML: {error}", path=file.path, line=line) from error
    except (DefusedXmlException, ValueError, RecursionError) as error:
        raise InputError(f"unsupported XML: {str(error).splitlines()[0]}", path=file.path) from error
    if root.tag != "graphs":
        raise InputError("expected the graphs of NCCL", path=file.path, text=root.tag)
    for graph in root.iter("graph"):
        for channel in graph.iter("channel"):
            gpus = [_device(element, file) for element in channel if element.tag == "gpu"]
            nets = sum(element.tag == "net" for element in channel)
            if len(set(gpus)) != len(gpus):
                raise InputError("a GPU is repeated in a channel", path=file.path, text=str(gpus[:20]))
            if gpus:
                yield graph.get("pattern", ""), gpus, nets


def _device(element: Element, file: SourceFile) -> int:
    number = element.get("dev", "")
    if not (number.isascii() and number.isdigit() and len(number) < 8 and int(number) < MOST):
        raise InputError("a GPU without the number of its device", path=file.path, text=number)
    return int(number)


NCCL_GRAPH = Format(
    "nccl-graph",
    kind="profile",
    evidence="public",
    about="profile: rings and trees of one node from NCCL_GRAPH_DUMP_FILE",
    recognise=_recognise_nccl_graph,
    parse=_parse_nccl_graph,
)
"""Communication on one node as planned by NCCL: the XML of ``NCCL_GRAPH_DUMP_FILE``.

    <graphs version="1">
      <graph id="0" pattern="4" nchannels="2" speedintra="20" ...>
        <channel><gpu dev="0"/><gpu dev="1"/> ...</channel>

A channel lists the GPUs of one node in the order of a ring (pattern 4) or of a tree's branch (patterns 1 to
3), possibly with the network device (``<net>``) by which it enters and leaves the node. The file contains no
bytes and no ranks: GPU d is taken as rank d of one node, and every channel as one byte along each of its
links, in the direction of a ring, or both ways in a tree. Rings are read, or trees with `Options.collectives`
``tree``. Links through a network device lead to a node that is not in the file; they are ignored and counted,
as are other patterns (NVLS, CollNet), which are no links between GPUs.
"""
