r"""Slurm's ``topology.conf`` of the tree and block plugins, and the output of ``scontrol show topology``.

Lines contain ``Key=Value`` words: ``SwitchName= Nodes= | Switches= LinkSpeed=`` for a switch, ``BlockName=
Nodes=`` for a block, ``BlockSizes=`` once. Keys are not case-sensitive, host lists are those of Slurm and
ClusterShell, ``#`` begins a comment, ``\`` at the end of a line continues it. A file named by ``Include``
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
from pathlib import Path
from typing import Any

from ingest.formats.fabrics.trees import GIGABIT, Branch, block_branches, tree
from ingest.formats.hostlists import expand
from ingest.formats.slurm_fields import present
from ingest.options import Options
from ingest.parsed import Format, Parsed, contains
from ingest.reading.source import Place, SourceFile, read_paths
from ingest.reading.text import Spot, load_yaml
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


MAX_SIZE = 1 << 30
_YAML = re.compile(r"^[ \t]*(-[ \t]+)?topology:[ \t]*\S", re.MULTILINE)
_LIST = re.compile(r"^-[ \t]", re.MULTILINE)
_KINDS = ("tree", "block", "flat", "ring", "torus3d")
_RECOGNISED_KIND = re.compile(rf"^[ \t]+(?:-[ \t]+)?({'|'.join(_KINDS)}):", re.MULTILINE)
_TRUE = ("true", "yes", "on", "1")


def _recognise_slurm_topology_yaml(head: str, path: str) -> bool:
    """Return True if the text is a list of items with a topology and one of its kinds."""
    if not _LIST.search(head):
        return False
    return _YAML.search(head) is not None and _RECOGNISED_KIND.search(head) is not None


def _parse_slurm_topology_yaml(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of the default topology; errors are those of `branches_of` and `trees.tree`."""
    branches, warnings = branches_of_yaml(files, options)
    return tree(files[0].path, branches, options, warnings)


def branches_of_yaml(
    files: Sequence[SourceFile], options: Options
) -> tuple[Mapping[str, Branch], Sequence[str]]:
    """Return the switches or blocks of the default topology in their order, and warnings.

    Missing and unknown keys are errors.
    """
    (file,) = files
    root = Spot(file.path)
    found = root.list(load_yaml(file))
    if not found:
        raise root.error("no topology")
    topologies = list(root.objects(found))
    for spot, topology in topologies:
        spot.text(topology.get("topology"))
    defaults = [one for one in topologies if str(one[1].get("cluster_default", "")).lower() in _TRUE]
    if len(defaults) > 1:
        raise defaults[1][0].error("a second topology is marked as the cluster's default")
    spot, topology = (defaults or topologies)[0]
    warnings: list[str] = []
    if len(topologies) > 1:
        others = ", ".join(str(one["topology"]) for at, one in topologies if at != spot)
        warnings.append(f"topology {topology['topology']!r} is read, others are ignored: {others}")
    if "tree" in topology:
        return _tree(topology["tree"], spot.at("tree")), warnings
    if "block" in topology:
        branches, notes = _yaml_block(topology["block"], spot.at("block"))
        return branches, [*warnings, *notes]
    kind = next((kind for kind in topology if kind not in ("topology", "cluster_default")), "nothing")
    raise spot.error(f"topologies of the kind {kind} are not supported: only tree and block are")


def _tree(value: Any, spot: Spot) -> dict[str, Branch]:
    """Return the switches of a tree."""
    spot = spot.at("switches")
    return _items(
        _member(value, "switches", spot), spot, "switch", {"children": "switches", "nodes": "hosts"}
    )


def _yaml_block(value: Any, spot: Spot) -> tuple[dict[str, Branch], tuple[str, ...]]:
    """Return the blocks and their groups."""
    sizes, at = _member(value, "block_sizes", spot, []), spot.at("block_sizes")
    numbers = [here.whole(size, 1, MAX_SIZE) for here, size in at.items(sizes)]
    spot = spot.at("blocks")
    blocks = _items(_member(value, "blocks", spot), spot, "block", {"nodes": "hosts"})
    return block_branches(blocks, numbers, at.place)


def _items(value: Any, spot: Spot, naming: str, lists: dict[str, str]) -> dict[str, Branch]:
    """Return the switches or blocks; their host lists go to the given fields of `Branch`."""
    branches: dict[str, Branch] = {}
    for here, item in spot.objects(value):
        if unknown := set(item) - {naming, *lists}:
            raise here.error(f"unknown key {min(unknown)}")
        name = here.at(naming).text(item.get(naming))
        if name in branches:
            raise here.error(f"{name!r} is repeated")
        fields = {
            field: expand(here.at(key).text(item[key]), path=spot.path)
            for key, field in lists.items()
            if key in item
        }
        branches[name] = Branch(
            place=here.place,
            switches=fields.get("switches", ()),
            hosts=fields.get("hosts", ()),
        )
    return branches


def _member(value: Any, key: str, spot: Spot, default: Any = None) -> Any:
    """Return a member of an object; raise `InputError` if it is missing and has no default."""
    found = spot.object(value).get(key, default)
    if found is None:
        raise spot.error(f"the key {key} is missing")
    return found


SLURM_TOPOLOGY_YAML = Format(
    "slurm-topology-yaml",
    kind="fabric",
    evidence="public",
    about="Slurm's network: topology.yaml (25.05 and later)",
    recognise=_recognise_slurm_topology_yaml,
    parse=_parse_slurm_topology_yaml,
)
"""Slurm's ``topology.yaml`` (25.05 and later): several topologies of one cluster in a list.

Each has a name, ``topology``, optionally ``cluster_default: true``, and one of ``tree``, ``block``, ``flat``
or newer kinds. The cluster's default is read (or the first if there is none); the others are counted. A
default of another kind than tree and block is rejected: ``flat`` has no network, and the order of hosts in
``ring`` and ``torus3d`` is not documented well enough to know the neighbours. Source: topology.yaml(5).
"""


_HEAD = 1 << 16


def read_leaves(path: str | Path) -> tuple[tuple[str, ...], ...]:
    """Return the hosts of each leaf switch or block of a file, which Slurm of 26.05 visits in this order.

    Raises:
        InputError: The file cannot be read, or is no topology of switches or blocks.
    """
    files = [file for group in read_paths([path]) for file in group.files]
    head = files[0].data[:_HEAD].decode("utf-8", "replace") if len(files) == 1 else ""
    for format, read in ((SLURM_TOPOLOGY, branches_of), (SLURM_TOPOLOGY_YAML, branches_of_yaml)):
        if format.recognise(head, str(path)):
            branches, _ = read(files, Options())
            return tuple(branch.hosts for branch in branches.values() if branch.hosts)
    raise InputError("is no topology.conf or topology.yaml with switches or blocks", path=str(path))
