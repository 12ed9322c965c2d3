"""Reproduce Orduna, Silla and Duato 2004, Tables 1 and 2: equivalent distances of a 10-switch network."""

from __future__ import annotations

import numpy as np

from bench.support.figures import Effort, Figure, Row
from ingest.generate.irregular import autonet
from mapping.distances.distances import EQUIVALENT, distances
from mapping.routing.catalog import build_routes
from registry.model import Floats

TABLE_2 = (
    (0, 1, 1, 2, 1, 3, 1, 3, 3, 1),
    (1, 0, 1, 2, 1, 3, 1, 3, 3, 1),
    (1, 1, 0, 2, 2, 3, 1, 3, 3, 1),
    (2, 2, 2, 0, 2, 1, 1, 1, 1, 2),
    (1, 1, 2, 2, 0, 3, 1, 3, 3, 1),
    (3, 3, 3, 1, 3, 0, 2, 1, 1, 1),
    (1, 1, 1, 1, 1, 2, 0, 2, 2, 1.25),
    (3, 3, 3, 1, 3, 1, 2, 0, 1, 2),
    (3, 3, 3, 1, 3, 1, 2, 1, 0, 2),
    (1, 1, 1, 2, 1, 1, 1.25, 2, 2, 0),
)
"""As printed."""
ROOTS = ("switch6", "switch3")


def run(effort: Effort) -> Figure:
    """Compute equivalent distances by up*/down* from each root that the table allows, and from all others."""
    rows = []
    for switch in range(10):
        off = int((np.abs(table(f"switch{switch}") - np.array(TABLE_2)) > 0.005).sum())
        named = f"switch{switch}" in ROOTS
        rows.append(
            Row(
                what=f"root {switch}: entries of Table 2 that differ",
                ours=f"{off} of 100",
                paper="2004-table-2" if named else "",
                why="" if named else "another root: the table cannot come from it" if off else "",
            )
        )
    return Figure(
        title="2004, Table 2: equivalent distances",
        setting="The 10 switches of Figure 3, as `ingest.generate.irregular.autonet` joins them (found by "
        "search, the text has no list of links); Kirchhoff's laws on all shortest legal paths. "
        "Golden test: tests/mapping/distances/test_equivalent.py.",
        rows=tuple(rows),
    )


def table(root: str) -> Floats:
    """Return the equivalent distances between switches (float64[10, 10])."""
    fabric = autonet(hosts=1)
    routes = build_routes(f"up-down:root={root}", fabric, fabric.hosts)
    return distances(EQUIVALENT, routes).matrix()
