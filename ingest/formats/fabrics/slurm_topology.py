"""Slurm's ``topology.conf`` of the tree and block plugins (`slurm_show_topology`: what ``scontrol`` prints).

Both are lines of ``Key=Value`` words: ``SwitchName= Nodes= | Switches= LinkSpeed=`` a switch,
``BlockName= Nodes=`` a block, ``BlockSizes=`` once. Keys are read in any case, host lists as Slurm and
ClusterShell write them, ``#`` begins a comment, ``\\`` at the end of a line continues it. ``Include``
names another file: it must be given in the same call, and is found by its base name; nothing else is
opened.

``LinkSpeed`` has no unit in Slurm, which does not use it; it is taken as Gbit/s. ``scontrol`` prints 1
where none is set, and the hosts of all leaves below in the line of a higher switch.
Source: topology.conf(5); seen from Slurm 22.05.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from ingest.formats.fabrics.blocks import block_branches
from ingest.formats.fabrics.draft import Place
from ingest.formats.fabrics.trees import GIGABIT, Branch, tree
from ingest.formats.jobs.hostlists import expand
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

_WORD = re.compile(r'\s*([A-Za-z]+)=("[^"]*"|\S*)')
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*", re.IGNORECASE)
_RECOGNISED = re.compile(
    r"^[ \t]*(SwitchName|BlockName)=[^\s=]+[ \t]*([ \t]\w+=|\\?\r?$)", re.MULTILINE | re.IGNORECASE
)
_PRINTED = re.compile(r"^SwitchName=\S+ Level=\d+ LinkSpeed=", re.MULTILINE)
_SWITCH_KEYS = frozenset({"switchname", "switches", "nodes", "linkspeed", "level"})
_BLOCK_KEYS = frozenset({"blockname", "nodes"})
_UNSET = "1"


def recognise(head: str, path: str) -> bool:
    """Whether a line begins with a switch's or a block's name, and none is of ``scontrol show topology``."""
    return _RECOGNISED.search(head) is not None and not printed(head)


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The fabric of one configuration, with the files that it includes.

    Raises
    ------
    InputError
        A line or host list that cannot be read, a switch or block described twice or not at all, a
        switch above itself, an included file that was not given, both switches and blocks.
    """
    given = {posixpath.basename(file.path.replace("\\", "/").rsplit("!", 1)[-1]) for file in files}
    switches: dict[str, Branch] = {}
    blocks: dict[str, Branch] = {}
    sizes: list[tuple[str, Place]] = []
    for file in files:
        for place, line in _lines(file):
            words = _words(line, place, given)
            if "switchname" in words:
                _put(switches, words["switchname"], _switch(words, place), place)
            elif "blockname" in words:
                _put(blocks, words["blockname"], _block(words, place), place)
            elif "blocksizes" in words:
                sizes.append((words["blocksizes"], place))
            elif words:
                raise place.error("neither a switch nor a block")
    path = files[0].path
    if bool(switches) == bool(blocks):
        raise InputError("both switches and blocks" if switches else "no switch and no block", path=path)
    if not blocks:
        told = options.rate is None and any(branch.speed is not None for branch in switches.values())
        said = ["LinkSpeed is taken as Gbit/s; Slurm gives it no unit"] if told else []
        return tree(path, switches, options, said)
    place = sizes[0][1] if sizes else Place(path)
    branches, warnings = block_branches(blocks, _sizes(sizes), place)
    return tree(path, branches, options, warnings)


def printed(head: str) -> bool:
    """Whether it is what ``scontrol show topology`` prints: levels stand behind names."""
    return _PRINTED.search(head) is not None


def _lines(file: SourceFile) -> Iterator[tuple[Place, str]]:
    """Lines without comments, continued ones joined, each with the place where it begins."""
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
    """Values by key in lower case; none for a line that includes a file."""
    if (include := _INCLUDE.fullmatch(line)) is not None:
        if posixpath.basename(include[1]) not in given:
            raise place.error(f"the included file {include[1]} was not given: name it in the same call")
        return {}
    words: dict[str, str] = {}
    at = 0
    while at < len(line.rstrip()):
        match = _WORD.match(line, at)
        if match is None or match[1].lower() in words:
            raise place.error("not words of Key=Value, or a key twice")
        words[match[1].lower()] = match[2].strip('"')
        at = match.end()
    return words


def _switch(words: Mapping[str, str], place: Place) -> Branch:
    if unknown := set(words) - _SWITCH_KEYS:
        raise place.error(f"the key {min(unknown)} is not known")
    below = expand(words.get("switches", ""), path=place.path, line=place.line)
    hosts = expand(words.get("nodes", ""), path=place.path, line=place.line)
    printed = "level" in words
    speed = words.get("linkspeed", _UNSET)
    if not re.fullmatch(r"\d{1,9}", speed, re.ASCII):
        raise place.error("LinkSpeed is no whole number")
    return Branch(
        place=place,
        switches=below,
        hosts=() if printed and below else hosts,
        speed=None if speed in (_UNSET, "0") else int(speed) * GIGABIT,
    )


def _block(words: Mapping[str, str], place: Place) -> Branch:
    if unknown := set(words) - _BLOCK_KEYS:
        raise place.error(f"the key {min(unknown)} is not known")
    return Branch(place=place, hosts=expand(words.get("nodes", ""), path=place.path, line=place.line))


def _sizes(found: Sequence[tuple[str, Place]]) -> list[int]:
    """The block sizes as numbers; none where the file has none."""
    if len(found) > 1:
        raise found[1][1].error("BlockSizes twice")
    for text, place in found:
        if not re.fullmatch(r"[1-9]\d{0,8}(,[1-9]\d{0,8})*", text, re.ASCII):
            raise place.error("BlockSizes are no whole numbers")
        return [int(part) for part in text.split(",")]
    return []


def _put(found: dict[str, Branch], name: str, branch: Branch, place: Place) -> None:
    """Add a switch or a block under its name."""
    if name in found:
        raise place.error(f"{name!r} is described in line {found[name].place.line} already")
    found[name] = branch
