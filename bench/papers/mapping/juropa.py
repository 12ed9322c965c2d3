"""Reproduce Hoefler and Snir 2011, Figure 5(c): audikw_1 on Juropa, 3,292 nodes."""

from __future__ import annotations

from bench.papers.mapping.fat_trees_2011 import NETWORK, gains, rcm_row, series, sizes, time_rows
from bench.papers.mapping.mapping_2011 import panel
from bench.support.figures import Effort, Figure, Row
from ingest.generate.fat_trees import juropa_like


def run(effort: Effort) -> Figure:
    """Run the audikw-like guest at all sizes."""
    found = series(juropa_like(), "audikw", effort)
    rows = gains("audikw", found, "5c-range", effort)
    rows.append(rcm_row("audikw", found, "5c-rcm"))
    rows += [
        Row(
            what=f"{sizes(effort)[-1]} ranks: {name}, dilation",
            ours=found[-1][name].dilation,
            baseline="hops",
            paper=f"5c-dilation-{name.split()[0]}",
            why=NETWORK,
        )
        for name in ("rcm", "rcm (whole)", "greedy", "greedy (last)", "recursive")
    ]
    return Figure(
        title="2011, Figure 5(c): audikw on 3,292 nodes like Juropa's",
        setting=f"138 leaves of 24 hosts below 12 directors; ranks on the first hosts; threshold accepting "
        f"{effort.refine_seconds:g} s after each strategy, ours {effort.search_seconds:g} s.",
        rows=(*rows, *time_rows(found, "5c")),
        panels=tuple(
            panel("audikw", sizes(effort), found, baseline, "network") for baseline in ("in-order", "random")
        ),
    )
