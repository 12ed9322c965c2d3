"""Load of every link: the routing kernels beside an enumeration of paths, pair of hosts by pair of hosts."""

from __future__ import annotations

import itertools

import numpy as np

from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate
from mapping.routing.catalog import choose_routing
from mapping.selfcheck.comparison import Comparison, Subject, one_rank_per_host
from registry.model import Profile

HOSTS = 12
"""Most hosts between which pairs are drawn."""


def compare(subject: Subject) -> Comparison:
    """Compare the load that one pair of hosts puts on each link, for one pair after the other."""
    fabric, comparison = subject.fabric, Comparison("loads of links")
    routing, _ = choose_routing(fabric)
    hosts = subject.draw_hosts(HOSTS)
    pairs = subject.generator.permutation(list(itertools.permutations(hosts, 2))).tolist()
    for source, target, route in comparison.routes(subject, pairs, routing):
        if route is None:
            comparison.skipped += 1
            continue
        expected = np.zeros(len(fabric.links))
        for row, part in route:
            expected[row] += part
        ranks = hosts.index(source), hosts.index(target)
        profile = Profile.from_edges([ranks[0]], [ranks[1]], [1.0], ranks=len(hosts))
        found = evaluate(fabric, profile, one_rank_per_host(fabric, hosts), costs=CostModel(routing=routing))
        for row in np.flatnonzero((expected > 0) | (found.link_bytes > 0)).tolist():
            name = f"{fabric.names[source]} to {fabric.names[target]}, link {row}"
            comparison.add(name, float(found.link_bytes[row]), float(expected[row]))
    return comparison
