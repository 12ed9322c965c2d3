"""Slurm's blocks as a tree: a switch a block, one a group of consecutive blocks for each higher size.

The block plugin plans jobs into blocks (an NVLink domain, a rack), and into groups of consecutive blocks
whose sizes are the further numbers of ``BlockSizes``: with 8,16,32 two and four blocks make groups. Slurm
names no groups; here they are called after their first and last block, ``b01..b04``. A switch above all
joins what the largest groups leave apart. Source: topology.conf(5), BlockSizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingest.formats.fabrics.draft import Place
from ingest.formats.fabrics.trees import Branch


def block_branches(
    blocks: Mapping[str, Branch], sizes: Sequence[int], place: Place
) -> tuple[dict[str, Branch], tuple[str, ...]]:
    """The blocks and their groups as branches of a tree, and a warning.

    Parameters
    ----------
    blocks : mapping of str to Branch
        Each with its hosts, in the order of the file.
    sizes : sequence of int
        Hosts of a block and of each larger group, ascending; may be empty.
    place : Place
        Of the sizes.

    Raises
    ------
    InputError
        Sizes that do not ascend, or are not multiples of the first by a power of two.
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
    said = (f"Slurm names no switches above blocks: {groups} are made of BlockSizes",) if groups else ()
    return branches, said


def _grouped(
    names: Sequence[str], below: Mapping[int, str], count: int, place: Place, branches: dict[str, Branch]
) -> dict[int, str]:
    """The groups of so many blocks, by their first block, put into `branches`."""
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
