"""Trees of switches with hosts, from sources without cables: one link per pair.

Schedulers describe a network as a tree because they schedule by it. The real network usually is no tree: one
switch of the description ("core") may be many, and a pair may have many cables. A fabric from such a file is
good for distances and for the hosts of a switch, but its capacities are assumptions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from ingest.formats.fabrics.draft import Draft
from ingest.formats.hostlists import expand
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.source import Place, SourceFile
from ingest.reading.text import Spot, load_json, load_yaml
from registry import units

GIGABIT = 1e9 / 8
"""Bytes/s of one Gbit/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A switch and its children."""

    place: Place
    """Location of the switch, for errors."""
    switches: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """Direct children."""
    speed: float | None = None
    """Bytes/s of a link to a child; None if the source has none."""


def tree(path: str, branches: Mapping[str, Branch], options: Options, warnings: Sequence[str] = ()) -> Parsed:
    """Return the fabric of one or several trees.

    The speed of a link is that of the switch above it, else that of the switch below it, else `UNIT_RATE`; a
    rate given by the caller replaces all of them.

    Args:
        path: Path of the file, for errors.
        branches: Switches by name.
        Warnings: Warnings so far; those of the tree follow.

    Raises:
        InputError: A child that is not a switch of the file, a switch above itself, a name of both a host and
            a switch, or no links.
    """
    level = _levels(branches)
    draft = Draft()
    for name, branch in branches.items():
        draft.switch(name, branch.place, level=level[name])
        for child in branch.switches:
            draft.cable(name, child, rate=options.rate or branch.speed or branches[child].speed)
        for host in branch.hosts:
            draft.host(host, branch.place)
            draft.cable(name, host, rate=options.rate or branch.speed)
    parsed = draft.parsed(path, options, warnings=(*warnings, *_shape(branches)), levels=True)
    return replace(parsed, assumed=np.ones_like(parsed.assumed))


def _shape(branches: Mapping[str, Branch]) -> list[str]:
    """Return the assumptions about every tree, and notes about the shape of this one."""
    above = Counter(child for branch in branches.values() for child in (*branch.switches, *branch.hosts))
    several = sum(count > 1 for count in above.values())
    roots = sum(name not in above for name in branches)
    view = "a scheduler's view of the network, not its cables"
    return [
        f"{view}: one link is assumed between each switch and its children",
        *counted((several, "device is", "devices are", "below several switches")),
        *counted((roots if roots > 1 else 0, "tree", "trees", "without a connection")),
    ]


def _levels(branches: Mapping[str, Branch]) -> dict[str, int]:
    """Return the level of each switch: 1 without switches below, else one above the highest of them."""
    for branch in branches.values():
        for child in branch.switches:
            if child not in branches:
                raise branch.place.error(f"the switch {child!r} is not described in the file")
    below = {name: branch.switches for name, branch in branches.items()}
    level: dict[str, int] = {}
    try:
        for name in TopologicalSorter(below).static_order():
            level[name] = 1 + max((level[child] for child in branches[name].switches), default=0)
    except CycleError as error:
        name = min(error.args[1], key=list(branches).index)
        raise branches[name].place.error(f"the switch {name!r} is above itself") from error
    return level


def block_branches(
    blocks: Mapping[str, Branch], sizes: Sequence[int], place: Place
) -> tuple[dict[str, Branch], tuple[str, ...]]:
    """Return the blocks and their groups as branches of a tree, and a warning.

    Args:
        blocks: Blocks with their hosts, in the order of the file.
        sizes: Numbers of hosts of a block and of each larger group, ascending; may be empty.
        place: Location of the sizes, for errors.

    Raises:
        InputError: Sizes do not ascend, or are not multiples of the first by a power of two.
    """
    members = [1]
    for size in sizes[1:]:
        factor, rest = divmod(size, max(sizes[0], 1))
        if rest or factor & (factor - 1) or factor <= members[-1]:
            raise place.error("block sizes must be ascending multiples of the first by powers of two")
        members.append(factor)
    branches = dict(blocks)
    names = list(blocks)
    below = dict(enumerate(names))
    for count in (*members[1:], len(names)):
        if len(below) > 1:
            below = _grouped(names, below, count, place, branches)
    groups = len(branches) - len(blocks)
    note = f"Slurm names no switches above blocks: {groups} are added according to BlockSizes"
    return branches, (note,) if groups else ()


def _grouped(
    names: Sequence[str], below: Mapping[int, str], count: int, place: Place, branches: dict[str, Branch]
) -> dict[int, str]:
    """Return the groups of `count` blocks by their first block, and add them to `branches`."""
    groups: dict[int, list[str]] = {}
    for first, name in below.items():
        groups.setdefault(first // count * count, []).append(name)
    made: dict[int, str] = {}
    for first, children in groups.items():
        name = f"{names[first]}..{names[min(first + count, len(names)) - 1]}"
        if len(children) == 1 or name in branches:
            made[first] = children[0]
            continue
        branches[name] = Branch(place=place, switches=tuple(children))
        made[first] = name
    return made


MAX_LEVELS = 8
_ROW = re.compile(r"\s*(\S+)((?:[ \t]+\d{1,9})++)\s*", re.ASCII)
_HEAD = re.compile(rf"\s*([1-{MAX_LEVELS}])\s*", re.ASCII)

Way = tuple[int, ...]
"""Number of the child at each level, from the root."""


def _recognise_ibtopo(head: str, path: str) -> bool:
    """Return True if the first line is a number of levels and the next one a host with as many numbers."""
    lines = [line for line in head.split("\n", 2) if line.strip()]
    if len(lines) < 2 or (levels := _HEAD.fullmatch(lines[0])) is None:
        return False
    row = _ROW.fullmatch(lines[1])
    return row is not None and re.search(r"[A-Za-z]", row[1]) is not None and _fits(row, int(levels[1]))


def _parse_ibtopo(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one file."""
    (file,) = files
    head, *places = file.places()
    levels = _HEAD.fullmatch(head.text)
    if levels is None:
        raise head.error(f"expected a number of levels from 1 to {MAX_LEVELS}")
    hosts, first = _rows(places, int(levels[1]))
    below: dict[Way, dict[Way, None]] = {}
    for way in hosts:
        for depth in range(len(way)):
            below.setdefault(way[:depth], {})[way[: depth + 1]] = None
            first.setdefault(way[:depth], first[way])
    branches = {
        _name(way): Branch(
            place=place,
            switches=tuple(_name(child) for child in below.get(way, ())),
            hosts=tuple(hosts.get(way, ())),
        )
        for way, place in first.items()
        if way or len(below.get(way, ())) > 1
    }
    return tree(file.path, branches, options)


def _rows(places: Sequence[Place], levels: int) -> tuple[dict[Way, list[str]], dict[Way, Place]]:
    """Return the hosts at the end of each path, and the location of the first of them."""
    hosts: dict[Way, list[str]] = {}
    first: dict[Way, Place] = {}
    seen: set[str] = set()
    for place in places:
        if not place.text.strip():
            continue
        row = _ROW.fullmatch(place.text)
        if row is None or not _fits(row, levels):
            raise place.error(f"expected a host and {units.counted(levels, 'position')}")
        if row[1] in seen:
            raise place.error(f"the host {row[1]} is repeated")
        seen.add(row[1])
        way = tuple(int(digits) for digits in row[2].split())
        hosts.setdefault(way, []).append(row[1])
        first.setdefault(way, place)
    return hosts, first


def _fits(row: re.Match[str], levels: int) -> bool:
    return len(row[2].split()) == levels


def _name(way: Way) -> str:
    return "-".join(("sw", *map(str, way))) if way else "root"


IBTOPO = Format(
    "ibtopo",
    kind="fabric",
    evidence="public",
    about="tree of switches: LLNL's ibtopo, one line per host with its path",
    recognise=_recognise_ibtopo,
    parse=_parse_ibtopo,
)
"""LLNL's ibtopo: a number of levels, then one line per host with its position in a tree.

Line 1 is the number of levels of switches. Each other line is ``host id_top .. id_leaf``: the number of the
root's child above the host, the number of that child's child, and so on. Switches have no names; they are
named here by their path, ``sw-0-3``. With 1 level all hosts with the same number share a leaf, and a root
connects the leaves. Source: published samples; the tool itself was not available.
"""


TIER = re.compile(r"fabric\.topograph\.run/tier-(\d)")
OLDER = (
    "network.topology.nvidia.com/leaf",
    "network.topology.nvidia.com/spine",
    "network.topology.nvidia.com/core",
)
_DOMAIN = "accelerator.topograph.run/domain"
_LABELS = re.compile(r"fabric\.topograph\.run/tier-\d|network\.topology\.nvidia\.com/leaf")
_ITEMS = re.compile(r"\"?\bitems\"?\s*:")


def _recognise_topograph_labels(head: str, path: str) -> bool:
    """Return True if the text is a list of Kubernetes with a label of topograph."""
    return _LABELS.search(head) is not None and _ITEMS.search(head) is not None and "kubernetes.io/" in head


def _parse_topograph_labels(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of the labels; a switch below two others, or on two tiers, is an error."""
    (file,) = files
    root = Spot(file.path)
    begins = file.head(4096).lstrip()[:1]
    content = root.object(load_json(file) if begins == "{" else load_yaml(file))
    tree_of = _Tiers()
    without = domains = 0
    for spot, item in root.at("items").objects(content.get("items")):
        name, labels = _node(item, spot)
        tiers = _tiers(labels, spot)
        domains += _DOMAIN in labels
        if not tiers:
            without += 1
            continue
        tree_of.add(name, tiers, spot)
    warnings = counted(
        (without, "node has", "nodes have", "no label of a switch: ignored"),
        (domains, "node names", "nodes name", "a domain of accelerators, which is ignored"),
    )
    return tree(file.path, tree_of.branches(file.path), options, warnings)


class _Tiers:
    """The switches so far: the switch above each, and the children of each."""

    def __init__(self) -> None:
        self._above: dict[str, tuple[str, int]] = {}
        self._hosts: dict[str, list[str]] = {}
        self._below: dict[str, dict[str, None]] = {}
        self._seen: set[str] = set()

    def add(self, host: str, tiers: tuple[str, ...], spot: Spot) -> None:
        """Add a host and the switches above it, the closest first."""
        if host in self._seen:
            raise spot.error(f"the node {host!r} is repeated")
        self._seen.add(host)
        self._hosts.setdefault(tiers[0], []).append(host)
        for tier, (low, high) in enumerate(zip(tiers, (*tiers[1:], ""), strict=True)):
            if self._above.setdefault(low, (high, tier)) != (high, tier):
                raise spot.error(f"the switch {low!r} has another parent in the labels of another node")
            if high:
                self._below.setdefault(high, {})[low] = None

    def branches(self, path: str) -> dict[str, Branch]:
        """Return the tree."""
        return {
            name: Branch(
                place=Place(path, text=name),
                switches=tuple(self._below.get(name, ())),
                hosts=tuple(self._hosts.get(name, ())),
            )
            for name in self._above
        }


def _node(item: dict[str, Any], spot: Spot) -> tuple[str, dict[str, Any]]:
    """Return name and labels of a node."""
    meta = spot.at("metadata").object(item.get("metadata"))
    labels = spot.at("labels").object(meta.get("labels") or {})
    name = labels.get("kubernetes.io/hostname") or meta.get("name")
    return spot.at("metadata").at("name").text(name), labels


def _tiers(labels: dict[str, Any], spot: Spot) -> tuple[str, ...]:
    """Return the switches above a node, the closest first."""
    found = {int(match[1]): value for key, value in labels.items() if (match := TIER.fullmatch(key))}
    if not found:
        found = {tier: labels[key] for tier, key in enumerate(OLDER) if key in labels}
    if sorted(found) != list(range(len(found))):
        raise spot.error("a tier between others is missing")
    tiers = tuple(spot.at("labels").text(found[tier]) for tier in range(len(found)))
    if len(set(tiers)) < len(tiers):
        raise spot.error("a switch is on two tiers")
    return tiers


TOPOGRAPH_LABELS = Format(
    "topograph-labels",
    kind="fabric",
    evidence="public",
    about="tree of switches: Kubernetes nodes labelled by topograph, JSON or YAML",
    recognise=_recognise_topograph_labels,
    parse=_parse_topograph_labels,
)
"""Kubernetes nodes with topograph's labels: output of ``kubectl get nodes -o json`` (or ``-o yaml``).

``fabric.topograph.run/tier-0`` names the switch of a node, ``tier-1`` the switch above it and so on; older
releases used ``network.topology.nvidia.com/leaf``, ``spine`` and ``core``. Domains of accelerators
(``accelerator.topograph.run/domain``) are counted but not read. The name of a node is
``kubernetes.io/hostname``, else ``metadata.name``. topograph truncates long names of switches to the 63
characters of a label. Source: the documentation of github.com/NVIDIA/topograph.
"""


_MODEL = re.compile(r"^switches:[ \t]*\r?$", re.MULTILINE)
_BLOCKS = re.compile(r"^(blocks|capacity_blocks|nodes):[ \t]*\r?$", re.MULTILINE)
_TREE = re.compile(r"^[ \t]+(switches|nodes|capacity_blocks):", re.MULTILINE)


def _recognise_topograph_model(head: str, path: str) -> bool:
    """Return True if the text has the model's keys at the start of a line."""
    return _MODEL.search(head) is not None and bool(_BLOCKS.search(head) or _TREE.search(head))


def _parse_topograph_model(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one model; a block on an undescribed switch is an error."""
    (file,) = files
    root = Spot(file.path)
    model = root.object(load_yaml(file))
    branches: dict[str, Branch] = {}
    blocks_of: dict[str, tuple[str, ...]] = {}
    for name, value, spot in _named(model.get("switches"), root.at("switches")):
        item = spot.object(value or {})
        if name in branches:
            raise spot.error(f"the switch {name!r} is repeated")
        below = _hosts(item.get("switches", []), spot.at("switches"))
        hosts = _hosts(item.get("nodes", []), spot.at("nodes"))
        branches[name] = Branch(place=spot.place, switches=below, hosts=hosts)
        blocks_of[name] = _hosts(item.get("capacity_blocks", []), spot.at("capacity_blocks"))
    for branch in list(branches.values()):
        for child in branch.switches:  # leaves need no description
            branches.setdefault(child, Branch(place=branch.place))
    isolated = _blocks(model, root, branches) + _capacity_blocks(model, root, branches, blocks_of)
    warnings = counted((isolated, "host is", "hosts are", "below no switch and ignored"))
    return tree(file.path, branches, options, warnings)


def _blocks(model: dict[str, Any], root: Spot, branches: dict[str, Branch]) -> int:
    """Add the hosts of the blocks to their switches; return how many hosts have none."""
    isolated = 0
    for spot, block in root.at("blocks").objects(model.get("blocks") or []):
        hosts = _hosts(block.get("nodes", []), spot.at("nodes"))
        if not block.get("switch"):
            isolated += len(hosts)
            continue
        _hang(branches, spot.at("switch").text(block["switch"]), hosts, spot)
    return isolated


def _capacity_blocks(
    model: dict[str, Any], root: Spot, branches: dict[str, Branch], blocks_of: dict[str, tuple[str, ...]]
) -> int:
    """Add the hosts of blocks of older models, which are named by their switches."""
    switch_of = {block: name for name, blocks in blocks_of.items() for block in blocks}
    placed = {host for branch in branches.values() for host in branch.hosts}
    isolated = 0
    for name, value, spot in _named(model.get("capacity_blocks"), root.at("capacity_blocks")):
        block = spot.object(value or {})
        hosts = [host for host in _hosts(block.get("nodes", []), spot.at("nodes")) if host not in placed]
        if name in switch_of:
            _hang(branches, switch_of[name], hosts, spot)
        else:
            isolated += len(hosts)
    return isolated


def _hang(branches: dict[str, Branch], switch: str, hosts: Sequence[str], spot: Spot) -> None:
    branch = branches.get(switch)
    if branch is None:
        raise spot.error(f"the switch {switch!r} is not described in the file")
    if twice := set(branch.hosts).intersection(hosts):
        raise spot.error(f"the host {min(twice)!r} is already below this switch")
    branches[switch] = replace(branch, hosts=(*branch.hosts, *hosts))


def _named(value: Any, spot: Spot) -> list[tuple[str, Any, Spot]]:
    """Return name, content and location of the items of a mapping, or of a list of items with names."""
    if not value:
        return []
    if isinstance(value, dict):
        return [(name, one, spot.at(name)) for name, one in value.items()]
    return [(here.at("name").text(one.get("name")), one, here) for here, one in spot.objects(value)]


def _hosts(value: Any, spot: Spot) -> tuple[str, ...]:
    """Return the names in a list of host lists."""
    found: dict[str, None] = {}
    for here, text in spot.items(value or []):
        for name in expand(here.text(text), path=spot.path):
            if name in found:
                raise spot.place.error(f"{name} is named twice")
            found[name] = None
    return tuple(found)


TOPOGRAPH_MODEL = Format(
    "topograph-model",
    kind="fabric",
    evidence="public",
    about="tree of switches: topograph's model in YAML",
    recognise=_recognise_topograph_model,
    parse=_parse_topograph_model,
)
"""NVIDIA topograph's model of a cluster: YAML with switches above switches, and blocks of hosts below them.

``switches`` maps names to their children (``switches``, in older models also ``nodes``), ``blocks`` is a list
of host lists with the ``switch`` that connects them. Older models have ``capacity_blocks`` instead: a
mapping, or a list whose blocks are named by a switch. Labels, annotations and kinds of accelerators are
ignored. Host lists are those of Slurm. Source: the models in the project's tests,
github.com/NVIDIA/topograph, Apache-2.0.
"""
