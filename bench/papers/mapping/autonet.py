"""Reproduce Orduna, Silla and Duato 2004, Tables 1 and 2: equivalent distances of a 10-switch network."""

from __future__ import annotations

import numpy as np

from bench.papers.mapping.mapping_2011 import Effort
from bench.support.papers import Figure, Row
from ingest.generate.direct import autonet
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
    """Compute routes from node 0 to node 1, and equivalent distances by up*/down* from every root."""
    rows = [
        Row(
            what="root 6: links from node 0 to node 1, with their share of the traffic",
            ours=", ".join(f"{link} {share:.0%}" for link, share in shares(0, 1, "switch6").items()),
            paper="2004-paths",
            why="only the two shortest paths carry traffic, as the distances of section 3 count them; "
            "tests/mapping/routing/test_shortest_paths.py lists all four",
        )
    ]
    for switch in range(10):
        off = int((np.abs(table(f"switch{switch}") - np.array(TABLE_2)) > 0.005).sum())
        named = f"switch{switch}" in ROOTS
        key, why = "2004-table-2" if named else "", "another root: the table cannot come from it"
        what = f"root {switch}: entries of Table 2 that differ"
        rows.append(Row(what, f"{off} of 100", "", key, "" if named or not off else why))
    return Figure(
        title="2004, Tables 1 and 2: paths and equivalent distances",
        setting="The 10 switches of Figure 3, as `ingest.generate.direct.autonet` joins them (found by "
        "search, the text has no list of links); Kirchhoff's laws on all shortest legal paths. "
        "Golden test: tests/mapping/distances/test_distances.py.",
        rows=tuple(rows),
    )


def shares(source: int, target: int, root: str) -> dict[str, float]:
    """Return the share of the traffic from one switch's host to another's on each link between switches."""
    fabric = autonet(hosts=1)
    routes = build_routes(f"up-down:root={root}", fabric, fabric.hosts)
    loads, links = routes.link_bytes([source], [target], [1.0]), fabric.links
    used = loads * (fabric.forwards[links.source] & fabric.forwards[links.target])
    names = [name.removeprefix("switch") for name in fabric.names]
    return {
        f"{names[links.source[row]]}-{names[links.target[row]]}": float(used[row])
        for row in np.flatnonzero(used)
    }


def table(root: str) -> Floats:
    """Return the equivalent distances between switches (float64[10, 10])."""
    fabric = autonet(hosts=1)
    routes = build_routes(f"up-down:root={root}", fabric, fabric.hosts)
    return distances(EQUIVALENT, routes).matrix()
