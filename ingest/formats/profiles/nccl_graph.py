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

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from ingest.formats.profiles.nccl_log import channel_kind, links_profile
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

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
