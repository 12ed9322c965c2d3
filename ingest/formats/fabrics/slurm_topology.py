"""Slurm's ``topology.conf`` of the tree and block plugins, and the output of ``scontrol show topology``.

Lines contain ``Key=Value`` words: ``SwitchName= Nodes= | Switches= LinkSpeed=`` for a switch, ``BlockName=
Nodes=`` for a block, ``BlockSizes=`` once. Keys are not case-sensitive, host lists are those of Slurm and
ClusterShell, ``#`` begins a comment, ``\\`` at the end of a line continues it. A file named by ``Include``
must be part of the same ingest and is found by its base name; no other file is opened.

``LinkSpeed`` has no unit in Slurm, which does not use it; it is taken as Gbit/s. Source: topology.conf(5);
tested with Slurm 22.05.

``scontrol show topology`` prints the same words with the level of each switch, 1 if no speed is set, and the
hosts of all leaves below in the line of a higher switch; they are assigned to the leaves. Its output for one
node (``scontrol show topology NODE``) lists only the switches above it, and is rejected. With the block
plugin it prints ``BlockName= BlockIndex= Nodes= BlockSize=``, and ``AggregatedBlock=NAMES`` for a group.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from ingest.formats.fabrics.trees import GIGABIT, Branch, block_branches, tree
from ingest.formats.jobs.hostlists import expand
from ingest.formats.jobs.slurm_fields import present
from ingest.options import Options
from ingest.parsed import Format, Parsed, contains
from ingest.reading.source import Place, SourceFile
from registry.errors import InputError

_WORD = re.compile(r'\s*([A-Za-z]+)=("[^"]*"|\S*)')
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*", re.IGNORECASE)
_RECOGNISED = re.compile(
    r"^[ \t]*(SwitchName|BlockName)=[^\s=]+[ \t]*([ \t]\w+=|\\?\r?$)", re.MULTILINE | re.IGNORECASE
)
_is_printed = contains(
    r"^(?:SwitchName=\S+ Level=\d+ LinkSpeed=|(?:BlockName|AggregatedBlock)=\S+ BlockIndex=\d+)"
)
_NAMES = frozenset({"switchname", "blockname"})
_SWITCH_KEYS = frozenset({"switchname", "switches", "nodes", "linkspeed", "level"})
_BLOCK_KEYS = frozenset({"blockname", "nodes", "blockindex", "blocksize"})
_GROUP_KEYS = frozenset({"aggregatedblock", "nodes", "blockindex", "blocksize"})
_UNSET = "1"


def _recognise_slurm_topology(head: str, path: str) -> bool:
    """Return True if a line begins with a switch or block, and none is of ``scontrol show topology``."""
    return _RECOGNISED.search(head) is not None and not _is_printed(head, path)


def _parse_slurm_topology(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one configuration, with the files that it includes.

    Errors are those of `branches_of`, and what `trees.tree` rejects.
    """
    branches, warnings = branches_of(files, options)
    return tree(files[0].path, branches, options, warnings)


def branches_of(files: Sequence[SourceFile], options: Options) -> tuple[Mapping[str, Branch], Sequence[str]]:
    """Return switches or blocks in the order of the files, the groups of blocks, and warnings.

    Both switches and blocks are an error, and a missing included file.
    """
    given = {file.name for file in files}
    switches: dict[str, Branch] = {}
    blocks: dict[str, Branch] = {}
    sizes: list[tuple[str, Place]] = []
    block_size, groups = 0, set[int]()
    for file in files:
        for place, line in _lines(file):
            words = _words(line, place, given)
            if "switchname" in words:
                _put(switches, words["switchname"], _switch(words, place), place)
            elif "blockname" in words:
                _put(blocks, words["blockname"], _block(words, place), place)
                block_size = max(block_size, _printed_size(words, place))
            elif "aggregatedblock" in words:
                _known(words, _GROUP_KEYS, place)
                groups.add(_printed_size(words, place))
            elif "blocksizes" in words:
                sizes.append((words["blocksizes"], place))
            elif words:
                raise place.error("expected a switch or a block")
    path = files[0].path
    if bool(switches) == bool(blocks):
        reason = "both switches and blocks found" if switches else "no switch or block found"
        raise InputError(reason, path=path)
    if not blocks:
        speeds = options.rate is None and any(branch.speed is not None for branch in switches.values())
        return switches, ["LinkSpeed is taken as Gbit/s; Slurm gives it no unit"] if speeds else []
    if len(sizes) > 1:
        raise sizes[1][1].error("BlockSizes twice")
    numbers = _sizes(*sizes[0]) if sizes else [block_size, *sorted(groups)] if groups else []
    return block_branches(blocks, numbers, sizes[0][1] if sizes else Place(path))


def _lines(file: SourceFile) -> Iterator[tuple[Place, str]]:
    """Yield the lines without comments, continued ones joined, each with the location of its start."""
    begun, first = "", 0
    for number, line in enumerate(file.lines(), start=1):
        bare = line.split("#", 1)[0].rstrip()
        first = first or number
        if bare.endswith("\\"):
            begun += bare[:-1] + " "
            continue
        if (begun + bare).strip():
            yield Place(file.path, first, begun + bare), begun + bare
        begun, first = "", 0
    if begun.strip():
        raise InputError("the last line is continued, but nothing follows", path=file.path, line=first)


def _words(line: str, place: Place, given: set[str]) -> dict[str, str]:
    """Return the values by key in lower case; empty for a line that includes a file."""
    if (include := _INCLUDE.fullmatch(line)) is not None:
        if posixpath.basename(include[1]) not in given:
            raise place.error(f"the included file {include[1]} is missing: add it to the ingest")
        return {}
    words: dict[str, str] = {}
    at = 0
    while at < len(line.rstrip()):
        match = _WORD.match(line, at)
        if match is None or match[1].lower() in words:
            raise place.error("expected Key=Value words, each key once")
        key, value = match[1].lower(), match[2].strip('"')
        words[key] = value if key in _NAMES else present(value)  # a switch may be called "unknown"
        at = match.end()
    return words


def _switch(words: Mapping[str, str], place: Place) -> Branch:
    """Return the switch of a line."""
    _known(words, _SWITCH_KEYS, place)
    below = expand(words.get("switches", ""), path=place.path, line=place.line)
    hosts = expand(words.get("nodes", ""), path=place.path, line=place.line)
    printed = "level" in words
    speed = words.get("linkspeed", _UNSET)
    if not re.fullmatch(r"\d{1,9}", speed, re.ASCII):
        raise place.error("LinkSpeed is not a whole number")
    return Branch(
        place=place,
        switches=below,
        hosts=() if printed and below else hosts,
        speed=None if speed in (_UNSET, "0") else int(speed) * GIGABIT,
    )


def _block(words: Mapping[str, str], place: Place) -> Branch:
    _known(words, _BLOCK_KEYS, place)
    return Branch(place=place, hosts=expand(words.get("nodes", ""), path=place.path, line=place.line))


def _known(words: Mapping[str, str], keys: frozenset[str], place: Place) -> None:
    """Raise `InputError` if a line has a key that is none of these."""
    if unknown := set(words) - keys:
        raise place.error(f"unknown key {min(unknown)}")


def _printed_size(words: Mapping[str, str], place: Place) -> int:
    """Return the ``BlockSize`` of a line; 0 if there is none, as in a file."""
    return _sizes(words["blocksize"], place)[0] if "blocksize" in words else 0


def _sizes(text: str, place: Place) -> list[int]:
    if not re.fullmatch(r"[1-9]\d{0,8}(,[1-9]\d{0,8})*+", text, re.ASCII):
        raise place.error("BlockSizes are not whole numbers")
    return [int(part) for part in text.split(",")]


def _put(found: dict[str, Branch], name: str, branch: Branch, place: Place) -> None:
    """Add a switch or a block under its name."""
    if name in found:
        raise place.error(f"{name!r} is already in line {found[name].place.line}")
    found[name] = branch


SLURM_TOPOLOGY = Format(
    "slurm-topology",
    kind="fabric",
    evidence="real",
    about="Slurm's network: topology.conf with switches or blocks",
    recognise=_recognise_slurm_topology,
    parse=_parse_slurm_topology,
    grouped=True,
)

SLURM_SHOW_TOPOLOGY = Format(
    "slurm-show-topology",
    kind="fabric",
    evidence="real",
    about="Slurm's network: output of `scontrol show topology`",
    recognise=_is_printed,
    parse=_parse_slurm_topology,
)
