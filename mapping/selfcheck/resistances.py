"""Equivalent distances beside the resistance distances of networkx (Orduña et al. 2004, section 3)."""

from __future__ import annotations

import itertools

import numpy as np

from mapping.distances.distances import EQUIVALENT_2, distances
from mapping.routing.catalog import build_routes, choose_routing
from mapping.selfcheck import oracles
from mapping.selfcheck.comparison import Comparison, Subject

HOSTS = 8
"""Most hosts between which distances are compared."""


def compare(subject: Subject) -> Comparison:
    """Compare the distances between a few hosts."""
    fabric, comparison = subject.fabric, Comparison("distances")
    routing, _ = choose_routing(fabric)
    hosts = subject.draw_hosts(HOSTS)
    routes = build_routes(routing, fabric, np.array(hosts, np.int32))
    matrix = distances(EQUIVALENT_2, routes).matrix()
    row_of = {host: row for row, host in enumerate(hosts)}
    pairs = itertools.permutations(hosts, 2)
    for source, target, route in comparison.routes(subject, pairs, routing):
        expected = np.inf
        if route is not None:
            rows = sorted({row for row, part in route if part > 0})
            expected = oracles.resistance(fabric, rows, source, target, own_cables=True)
        name = f"{fabric.names[source]} to {fabric.names[target]}"
        comparison.add(name, float(matrix[row_of[source], row_of[target]]), expected)
    return comparison
