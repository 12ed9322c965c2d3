"""Helpers of the tests of trees: a fabric's tree as plain sets, and a tree to compare with."""

from __future__ import annotations

import numpy as np

from registry.model import Fabric


def below(fabric: Fabric) -> dict[str, set[str]]:
    """Return the names right below each switch, by levels."""
    assert fabric.level is not None
    links = fabric.links
    found: dict[str, set[str]] = {}
    for source, target in zip(links.source.tolist(), links.target.tolist(), strict=True):
        if fabric.level[source] > fabric.level[target]:
            found.setdefault(fabric.names[source], set()).add(fabric.names[target])
    return found


def leaves_of_eight(leaf: str = "leaf{:02d}", core: str = "core") -> dict[str, set[str]]:
    """Return the tree of the Slurm cluster in tests/data: 64 nodes on 8 leaves below one core."""
    tree = {
        leaf.format(number + 1): {f"node{8 * number + node:04d}" for node in range(1, 9)}
        for number in range(8)
    }
    return {core: {leaf.format(number + 1) for number in range(8)}, **tree}


def rates(fabric: Fabric) -> set[float]:
    return set(np.unique(fabric.links.capacity).tolist())
