"""Reproduce Hoefler and Snir 2011, Figures 6(a) and 6(b): congestion and mapping times on Ranger."""

from __future__ import annotations

from bench.papers.mapping.fat_trees_2011 import gains, rcm_row, series, sizes, time_rows
from bench.papers.mapping.mapping_2011 import MATRICES, panel, seconds_panel
from bench.support.figures import Effort, Figure, Row
from ingest.generate.fat_trees import ranger_like


def run(effort: Effort) -> Figure:
    """Run all three guests, since Figure 6(a) does not name its matrix."""
    fabric = ranger_like()
    found = {name: series(fabric, name, effort) for name in MATRICES}
    rows: list[Row] = []
    for name in MATRICES:
        rows += gains(name, found[name], "6a-best", effort)
        rows.append(rcm_row(name, found[name], "6a-rcm"))
    every = [one for name in MATRICES for one in found[name]]
    return Figure(
        title="2011, Figures 6(a) and 6(b): 4,081 nodes like Ranger's",
        setting=f"341 leaves of 12 hosts, each with 6 cables to two switches of 3,456 ports; threshold "
        f"accepting {effort.refine_seconds:g} s after each strategy, ours {effort.search_seconds:g} s.",
        rows=(*rows, *time_rows(every, "6b")),
        panels=(
            *(panel(name, sizes(effort), found[name], "random", "network") for name in MATRICES),
            seconds_panel("mapping time, nlpkkt", sizes(effort), found["nlpkkt"]),
        ),
    )
