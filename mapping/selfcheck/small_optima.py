"""Placements and lower bounds of small cases beside all placements, tried one by one."""

from __future__ import annotations

import itertools

import numpy as np

from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate
from mapping.placement.search.options import SearchOptions
from mapping.placement.search.placing import place
from mapping.routing.catalog import choose_routing
from mapping.selfcheck import oracles
from mapping.selfcheck.comparison import TOLERANCE, Comparison, Subject, one_rank_per_host
from registry.model import Fabric, Longs, Profile

HOSTS = 5
STEPS = 200_000
CASES = 8
"""Most cases; each tries 120 placements."""
METRICS = {"congestion": "congestion_seconds", "hop-bytes": "hop_bytes"}
"""Objective of the search and the metric it minimises."""


def compare(subject: Subject) -> Comparison:
    """Compare the results of searches with the least of all placements, which no bound may exceed."""
    fabric, comparison = subject.fabric, Comparison("searches and bounds")
    routing, _ = choose_routing(fabric)
    costs = CostModel(routing=routing)
    for case in range(CASES):
        hosts = subject.draw_hosts(HOSTS)
        if not comparison.goes_on(subject) or len(hosts) < 2:
            break
        bytes = subject.generator.integers(1, 1000, (len(hosts),) * 2) * ~np.eye(len(hosts), dtype=bool)
        sender, receiver = np.nonzero(bytes)
        profile = Profile.from_edges(sender, receiver, bytes[sender, receiver], ranks=len(hosts))
        try:
            least = _least(fabric, routing, hosts, bytes)
        except (oracles.TooManyPaths, LookupError):
            comparison.skipped += 1
            continue
        for objective, metric in METRICS.items():
            options = SearchOptions(objective=objective, steps=STEPS, workers=1, seed=case)
            allocation = one_rank_per_host(fabric, hosts).allocation
            placement = place(fabric, profile, allocation, options, costs)
            evaluation = evaluate(fabric, profile, placement, costs=costs, bounds=True)
            comparison.add(f"{objective} of case {case}", float(getattr(evaluation, metric)), least[metric])
            bound = evaluation.bounds[metric].value
            comparison.add(
                f"lower bound of {objective} of case {case}",
                min(bound, least[metric] * (1 + TOLERANCE)),
                bound,
            )
    return comparison


def _least(fabric: Fabric, routing: str, hosts: list[int], bytes: Longs) -> dict[str, float]:
    """Return the least of each metric over all placements, by enumeration of placements and paths."""
    share = np.zeros((len(hosts), len(hosts), len(fabric.links)))
    for i, j in itertools.permutations(range(len(hosts)), 2):
        route = oracles.route(fabric, hosts[i], hosts[j], routing)
        if route is None:
            raise LookupError
        for row, part in route:
            share[i, j, row] += part
    least = dict.fromkeys(METRICS.values(), np.inf)
    for order in itertools.permutations(range(len(hosts))):
        load = np.tensordot(bytes, share[np.ix_(order, order)], 2)
        least["congestion_seconds"] = min(
            least["congestion_seconds"], float((load / fabric.links.capacity).max())
        )
        least["hop_bytes"] = min(least["hop_bytes"], float(load.sum()))
    return least
