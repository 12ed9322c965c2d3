"""Reproduce Hoefler and Snir 2011, Figures 6(a) and 6(b): congestion and mapping times on Ranger."""

from __future__ import annotations

from bench.papers.mapping.fat_trees_2011 import ORDERS, all_orders, gains, rcm_rows, sizes, time_rows
from bench.papers.mapping.mapping_2011 import MATRICES, panel, seconds_panel
from bench.support.figures import Effort, Figure, Row
from ingest.generate.trees import ranger_like

REFINED = (64, 512, 1792)
"""Sizes at which threshold accepting is run."""


def run(effort: Effort) -> Figure:
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
