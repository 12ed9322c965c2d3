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
    for i, j in itertools.permutations(range(len(hosts)), 2):
        if not comparison.goes_on(subject):
            break
        try:
            route = oracles.route(fabric, hosts[i], hosts[j], routing)
        except oracles.TooManyPaths:
            comparison.skipped += 1
            continue
        if route is None:
            expected = np.inf
        else:
            rows = sorted({row for row, part in route if part > 0})
            expected = oracles.resistance(fabric, rows, hosts[i], hosts[j], own_cables=True)
        name = f"{fabric.names[hosts[i]]} to {fabric.names[hosts[j]]}"
        comparison.add(name, float(matrix[i, j]), expected)
    return comparison
