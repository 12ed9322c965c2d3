"""Trees of switches with hosts, from sources without cables: one link per pair.

Schedulers describe a network as a tree because they schedule by it. The real network usually is no tree: one
switch of the description ("core") may be many, and a pair may have many cables. A fabric from such a file is
good for distances and for the hosts of a switch, but its capacities are assumptions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

import numpy as np

from ingest.formats.fabrics.draft import Draft
from ingest.options import Options
from ingest.parsed import Parsed, counted
from ingest.reading.source import Place

GIGABIT = 1e9 / 8
"""Bytes/s of one Gbit/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A switch and its children.

    Attributes
    ----------
    place : Place
        Location of the switch, for errors.
    switches, hosts : tuple of str
        Direct children.
    speed : float or None
        Bytes/s of a link to a child; None if the source has none.
    """

    place: Place
    switches: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    speed: float | None = None


def tree(path: str, branches: Mapping[str, Branch], options: Options, warnings: Sequence[str] = ()) -> Parsed:
    """Return the fabric of one or several trees.

    The speed of a link is that of the switch above it, else that of the switch below it, else `UNIT_RATE`; a
    rate given by the caller replaces all of them.

    Parameters
    ----------
    path : str
        Path of the file, for errors.
    branches : mapping of str to Branch
        Switches by name.
    warnings : sequence of str
        Warnings so far; those of the tree follow.

    Raises
    ------
    InputError
        A child that is not a switch of the file, a switch above itself, a name of both a host and a switch,
        or no links.
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

    Parameters
    ----------
    blocks : mapping of str to Branch
        Blocks with their hosts, in the order of the file.
    sizes : sequence of int
        Numbers of hosts of a block and of each larger group, ascending; may be empty.
    place : Place
        Location of the sizes, for errors.

    Raises
    ------
    InputError
        Sizes do not ascend, or are not multiples of the first by a power of two.
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
