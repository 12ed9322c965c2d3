"""Trees of switches with hosts below, from sources that tell no cables: a link a pair.

Schedulers describe a network as a tree because that is what they schedule by. The real one mostly is no
tree: what stands there as one switch ("core") may be many, and a pair may be joined by many cables. So a
fabric made of such a file is good for distances and for who shares a switch, and its capacities are what
somebody assumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ingest.formats.fabrics.draft import UNIT_RATE, Draft, Place, unknown_rates
from ingest.options import Options
from ingest.parsed import Parsed

GIGABIT = 1e9 / 8
"""Bytes/s of one Gbit/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A switch and what is below it.

    Attributes
    ----------
    place : Place
    switches, hosts : tuple of str
        Right below.
    speed : float or None
        Bytes/s of a link downwards; None where the source tells none.
    """

    place: Place
    switches: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    speed: float | None = None


def tree(path: str, branches: Mapping[str, Branch], options: Options, warnings: Sequence[str] = ()) -> Parsed:
    """The fabric of a tree, or of several.

    A link has the speed of the switch above it, else that of the switch below it, else the caller's or
    `UNIT_RATE`; a rate of the caller's counts before all of them.

    Parameters
    ----------
    path : str
        For errors.
    branches : mapping of str to Branch
        By name of the switch.
    options : Options
    warnings : sequence of str
        Put before those of the tree.

    Raises
    ------
    InputError
        A child that is no switch of the file, a switch above itself, a name of both a host and a switch, no
        links.
    """
    level = _levels(branches)
    draft = Draft()
    told = 0
    for name, branch in branches.items():
        draft.switch(name, branch.place, level=level[name])
        for child in branch.switches:
            speed = branch.speed or branches[child].speed
            told += speed is not None
            draft.cable(name, child, rate=options.rate or speed)
        for host in branch.hosts:
            draft.host(host, branch.place)
            told += branch.speed is not None
            draft.cable(name, host, rate=options.rate or branch.speed)
    default = options.rate or UNIT_RATE
    fabric, odd, assumed = draft.fabric(path, default_rate=default, levels=True)
    unknown = 0 if options.rate else len(draft.cables) - told
    said = _shape(branches) + unknown_rates(unknown, default, None)
    return Parsed(fabric=fabric, assumed=np.ones_like(assumed), warnings=(*warnings, *said, *odd))


def _shape(branches: Mapping[str, Branch]) -> list[str]:
    """What is assumed of every tree, and what is odd about the shape of this one."""
    above = Counter(child for branch in branches.values() for child in (*branch.switches, *branch.hosts))
    several = sum(count > 1 for count in above.values())
    roots = sum(name not in above for name in branches)
    said = [
        "a tree as a scheduler sees it, not the cables: one link is assumed between each switch and what is "
        "below it"
    ]
    if several:
        said.append(f"{several} device(s) are below several switches")
    if roots > 1:
        said.append(f"{roots} trees that nothing joins")
    return said


def _levels(branches: Mapping[str, Branch]) -> dict[str, int]:
    """Level of each switch: 1 without switches below, else one above the highest of them."""
    level: dict[str, int] = {}
    for start in branches:
        waiting: list[tuple[str, bool]] = [(start, False)]
        around: set[str] = set()
        while waiting:
            name, done = waiting.pop()
            branch = branches[name]
            if done:
                around.discard(name)
                level[name] = 1 + max((level[child] for child in branch.switches), default=0)
                continue
            if name in level:
                continue
            if name in around:
                raise branch.place.error(f"the switch {name!r} is above itself")
            around.add(name)
            waiting.append((name, True))
            for child in branch.switches:
                if child not in branches:
                    raise branch.place.error(f"the switch {child!r} is not described in the file")
                waiting.append((child, False))
    return level
