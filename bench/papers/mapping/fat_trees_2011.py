"""Reproduce Hoefler and Snir 2011, Figures 5(c), 6(a) and 6(b): fat trees like Juropa and Ranger."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from bench.papers.mapping.mapping_2011 import (
    MATRICES,
    OURS,
    READINGS,
    STRATEGIES,
    Effort,
    Mapped,
    best_of_three,
    by_size,
    change,
    compare,
    guest,
    panel,
    seconds_panel,
    span,
)
from bench.support.papers import Figure, Row
from ingest.generate.trees import juropa_like, ranger_like
from registry.model import Allocation, Fabric

RANKS = (64, 128, 256, 512, 1024, 1792)
NETWORK = (
    "a fat tree of the machine's size, not its real cabling; the worst link of all is often a host's own "
    "cable, which no placement changes"
)
ORDERS = {
    "cabled": "hosts in the order of their leaf switches, as names by rack, chassis and blade have them",
    "names": "hosts named node0, node1, ... along the leaf switches and sorted as texts: 0, 1, 10, 100, 1000",
    "racks": "racks of four leaf switches, whose hosts are cabled to them in turn and named by height",
}
"""Orders of host names, in which a batch system allocates hosts; the paper does not give the names."""
LEAVES = 4
"""Leaf switches of a rack."""
METRICS = {"worst": "worst link", "network": "worst network link", "estimate": "worst link by Algorithm 3"}


def sizes(effort: Effort) -> tuple[int, ...]:
    """Return the numbers of ranks."""
    return (64, 128) if effort.small else RANKS


def in_order_of(order: str, fabric: Fabric) -> list[int]:
    """Return all hosts (vertices) in one of `ORDERS`."""
    hosts = fabric.hosts
    if order == "names":
        return sorted(hosts.tolist(), key=str)
    leaf = fabric.neighbour[fabric.indptr[hosts]]
    if order == "racks":
        first = np.searchsorted(leaf, leaf)  # hosts of a leaf are together
        rack = (leaf - leaf[0]) // LEAVES
        return [int(host) for host in hosts[np.lexsort((leaf, np.arange(len(hosts)) - first, rack))]]
    return [int(host) for host in hosts]


def series(
    fabric: Fabric, matrix: str, effort: Effort, order: str, refined: Collection[int]
) -> list[dict[str, Mapped]]:
    """Run all sizes of one guest on the first hosts in an order, with threshold accepting for some."""
    counts, hosts = sizes(effort), in_order_of(order, fabric)
    return [
        compare(
            fabric,
            guest(matrix, ranks, effort.small),
            effort,
            refine=ranks in refined,
            search=ranks in refined and ranks in (counts[0], counts[-1]),
            allocation=Allocation.of(fabric, hosts[:ranks]),
        )
        for ranks in counts
    ]


def all_orders(
    fabric: Fabric, matrix: str, effort: Effort, refined: Collection[int] = RANKS
) -> dict[str, list[dict[str, Mapped]]]:
    """Run all orders of hosts; the first with threshold accepting for some sizes, and our search."""
    return {
        order: series(fabric, matrix, effort, order, refined if order == "cabled" else ()) for order in ORDERS
    }


def gains(
    matrix: str, orders: dict[str, list[dict[str, Mapped]]], paper: str, effort: Effort
) -> Iterator[Row]:
    """Yield changes by size in every order of hosts: the best of the paper's strategies, and ours."""
    against = [(metric, links, base) for metric, links in METRICS.items() for base in ("in-order", "random")]
    for order, found in orders.items():
        ways = {"with": True, "without": False} if order == "cabled" else {"without": False}
        for way, refined in ways.items():
            run = [one for one in found if one["greedy"].plain or not refined]
            best = [(one, best_of_three(one, refined=refined)) for one in run]
            for metric, links, base in against:
                changes = by_size([change(one, name, base, metric, refined=refined) for one, name in best])
                what = f"{matrix}, {order}: best of the paper's, {way} threshold accepting, {links}"
                yield Row(what, changes, base, paper, NETWORK)
    many, cabled = sizes(effort)[-1], orders["cabled"][-1]
    for metric, links, base in against:
        what = f"{matrix}, cabled, {many} ranks: ours, {links}"
        yield Row(what, change(cabled, OURS, base, metric), base)


def rcm_rows(matrix: str, orders: dict[str, list[dict[str, Mapped]]], paper: str) -> Iterator[Row]:
    """Count how often greedy beats RCM, both without threshold accepting."""
    for order, found in orders.items():
        for name in READINGS:
            better = sum(one[name].unrefined.network < one["rcm"].unrefined.network for one in found)
            what = f"{matrix}, {order}: {name} better than RCM on network congestion, without"
            yield Row(what, f"at {better} of {len(found)} sizes", paper=paper)


def time_rows(found: list[dict[str, Mapped]], paper: str) -> list[Row]:
    """Return processor times of the strategies over all sizes."""
    why = "another machine; greedy from 8 starts; distances and routes apart"
    rows = []
    for name in ("greedy", "greedy (start)", "rcm", "recursive"):
        seconds, key = span([one[name].seconds for one in found]), f"{paper}-seconds-{name.split()[0]}"
        rows.append(Row(f"{name}, time", seconds, "seconds", key, why))
    return rows


def juropa(effort: Effort) -> Figure:
    """Run the audikw-like guest at all sizes, with hosts in all orders."""
    orders = all_orders(juropa_like(), "audikw", effort)
    rows = [*gains("audikw", orders, "5c-range", effort), *rcm_rows("audikw", orders, "5c-rcm")]
    for order, found in orders.items():
        for name in ("in-order", "random", *STRATEGIES):
            one = found[-1][name].unrefined
            for kind, value in (("", one.dilation), (" of an edge", one.edge_dilation)):
                what = f"{order}, {sizes(effort)[-1]} ranks: {name}, dilation{kind}, without"
                key = f"5c-dilation-{name.split()[0]}" if name in STRATEGIES else ""
                rows.append(Row(what, value, "hops", key, NETWORK))
    return Figure(
        title="2011, Figure 5(c): audikw on 3,292 nodes like Juropa's",
        setting=f"138 leaves of 24 hosts below 12 directors; ranks on the first hosts of an order of names: "
        f"{'; '.join(f'{key}: {text}' for key, text in ORDERS.items())}. Threshold accepting "
        f"{effort.refine_seconds:g} s after each strategy, ours {effort.search_seconds:g} s, processor time.",
        rows=(*rows, *time_rows(orders["cabled"], "5c")),
        panels=(
            *(
                panel(f"audikw, {order}", sizes(effort), found, metric="network", refined=False)
                for order, found in orders.items()
            ),
            panel("audikw, cabled", sizes(effort), orders["cabled"], metric="network"),
        ),
    )


REFINED = (64, 512, 1792)
"""Sizes at which threshold accepting is run."""


def ranger(effort: Effort) -> Figure:
    """Run all three guests, since Figure 6(a) does not name its matrix, with hosts in all orders."""
    fabric = ranger_like()
    refined = sizes(effort) if effort.small else REFINED
    found = {name: all_orders(fabric, name, effort, refined) for name in MATRICES}
    rows: list[Row] = []
    for name in MATRICES:
        rows += [*gains(name, found[name], "6a-best", effort), *rcm_rows(name, found[name], "6a-rcm")]
    every = [one for name in MATRICES for one in found[name]["cabled"]]
    return Figure(
        title="2011, Figures 6(a) and 6(b): 4,081 nodes like Ranger's",
        setting=f"341 leaves of 12 hosts, each with 6 cables to two switches of 3,456 ports; ranks on the "
        f"first hosts of an order of names: {'; '.join(f'{key}: {text}' for key, text in ORDERS.items())}. "
        f"Threshold accepting {effort.refine_seconds:g} s after each strategy at "
        f"{', '.join(map(str, refined))} ranks, ours {effort.search_seconds:g} s, processor time.",
        rows=(*rows, *time_rows(every, "6b")),
        panels=(
            *(
                panel(f"{name}, {order}", sizes(effort), found[name][order], metric="network", refined=False)
                for name in MATRICES
                for order in ORDERS
            ),
            seconds_panel("mapping time, nlpkkt", sizes(effort), found["nlpkkt"]["cabled"]),
        ),
    )
