"""Reproduce Hoefler and Snir 2011, Figure 5(c): audikw_1 on Juropa, 3,292 nodes."""

from __future__ import annotations

from bench.papers.mapping.fat_trees_2011 import (
    NETWORK,
    ORDERS,
    all_orders,
    gains,
    rcm_rows,
    sizes,
    time_rows,
)
from bench.papers.mapping.mapping_2011 import STRATEGIES, panel
from bench.support.figures import Effort, Figure, Row
from ingest.generate.trees import juropa_like


def run(effort: Effort) -> Figure:
    """Run the audikw-like guest at all sizes, with hosts in all orders."""
    orders = all_orders(juropa_like(), "audikw", effort)
    rows = [*gains("audikw", orders, "5c-range", effort), *rcm_rows("audikw", orders, "5c-rcm")]
    for order, found in orders.items():
        for name in ("in-order", "random", *STRATEGIES):
            one = found[-1][name].unrefined
            for kind, value in (("", one.dilation), (" of an edge", one.edge_dilation)):
                rows.append(
                    Row(
                        what=f"{order}, {sizes(effort)[-1]} ranks: {name}, dilation{kind}, without",
                        ours=value,
                        baseline="hops",
                        paper=f"5c-dilation-{name.split()[0]}" if name in STRATEGIES else "",
                        why=NETWORK,
                    )
                )
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
