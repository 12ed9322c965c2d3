"""Fabrics as plain rows and sets to compare with, and a tree of switches."""

from __future__ import annotations

from typing import Any

import numpy as np

from registry.model import Fabric, Links


def rows_of(links: Links, *columns: str) -> list[tuple[Any, ...]]:
    """Return some columns of links row by row."""
    return list(zip(*(getattr(links, name).tolist() for name in columns), strict=True))


def cables_of(fabric: Fabric) -> list[tuple[str, int, str, int]]:
    """Return names and ports of the ends of each cable, as often as it is there."""
    rows = rows_of(fabric.links, "source", "source_port", "target", "target_port")
    return sorted((fabric.names[a], p, fabric.names[b], q) for a, p, b, q in rows if a < b)


def below(fabric: Fabric) -> dict[str, set[str]]:
    """Return the names right below each switch, by levels."""
    assert fabric.level is not None
    found: dict[str, set[str]] = {}
    for source, target in rows_of(fabric.links, "source", "target"):
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
