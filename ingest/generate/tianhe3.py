"""The Tianhe-3 prototype: chips of 96 nodes in a grid (Li et al. 2020, section 4.2)."""

from __future__ import annotations

import numpy as np

from ingest.generate.checks import cabled, each, numbered, pairs, whole
from registry.model import Fabric

SIDE = 48
"""Number of nodes of half a chip."""


def tianhe3(
    rows: int,
    columns: int,
    *,
    chips: int | None = None,
    capacities: tuple[float, float, float] = (1.0, 24.0, 12.0),
    slots: int = 1,
) -> Fabric:
    """Return a grid of chips, each with two linked leaf switches (left and right) of 48 nodes.

    Chips of a row are connected by two switches, one for all left halves and one for all right ones, and so
    are those of a column. The paper shows this only as a drawing; it is the simplest structure that gives its
    Table 1, where hops count the switches of a path: 1 and 2 within a chip on the same side and on different
    ones, 3 and 4 within a row or column, 5 and 6 elsewhere. Nodes are numbered by chip, row by row, left half
    first.

    Parameters
    ----------
    rows, columns : int
        Size of the grid of chips.
    chips : int, optional
        Number of chips, the first ones of the grid; all by default.
    capacities : (float, float, float)
        Bytes/s in each direction of a node's link, of the link between two halves, and of a half's link to a
        row or column switch. The paper gives none; the defaults are multiples of a node's.
    """
    whole("tianhe3.rows", rows, 1, 1 << 10)
    whole("tianhe3.columns", columns, 1, 1 << 10)
    count = whole("tianhe3.chips", rows * columns if chips is None else chips, 1, rows * columns)
    rates = each("tianhe3.capacities", capacities, 3)
    nodes, leaves = count * 2 * SIDE, 2 * count
    leaf = np.arange(leaves)
    chip, side = leaf // 2, leaf % 2
    # Row switches follow the leaves, and column switches follow those: two of each, left and right.
    row = leaves + chip // columns * 2 + side
    column = leaves + 2 * rows + chip % columns * 2 + side
    node = np.arange(nodes)
    cables = [
        pairs(node, nodes + node // SIDE),
        pairs(nodes + leaf[::2], nodes + leaf[1::2]),
        pairs(nodes + np.r_[leaf, leaf], nodes + np.r_[row, column]),
    ]
    switches = leaves + 2 * (rows + columns)
    return cabled(
        [*numbered("node", nodes), *_names("chip", count), *_names("row", rows), *_names("column", columns)],
        cables,
        rates,
        slots=np.repeat((whole("tianhe3.slots", slots, 1), 0), (nodes, switches)),
        level=np.repeat((0, 1, 2), (nodes, leaves, switches - leaves)),
    )


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind}{number}{side}" for number in range(count) for side in "lr"]
