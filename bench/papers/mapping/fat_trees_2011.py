"""Shared parts of Figures 5(c), 6(a) and 6(b) of Hoefler and Snir 2011: fat trees of real machines' sizes."""

from __future__ import annotations

from bench.papers.mapping.mapping_2011 import OURS, THREE, Mapped, best_of_three, change, compare, guest, span
from bench.support.figures import Effort, Row
from registry.model import Fabric

RANKS = (64, 128, 256, 512, 1024, 1792)
NETWORK = (
    "a fat tree of the machine's size, not its real cabling, and hosts in cabling order, where the paper has "
    "them by name: ranks in order are already near each other, and the worst link is often a host's own "
    "cable, which no placement changes; a random numbering of hosts is the paper's kind of start"
)


def sizes(effort: Effort) -> tuple[int, ...]:
    """Return the numbers of ranks."""
    return (64, 128) if effort.small else RANKS


def series(fabric: Fabric, matrix: str, effort: Effort) -> list[dict[str, Mapped]]:
    """Run all sizes of one guest on the first hosts."""
    counts = sizes(effort)
    return [
        compare(fabric, guest(matrix, ranks, effort.small), effort, search=ranks in (counts[0], counts[-1]))
        for ranks in counts
    ]


def gains(matrix: str, found: list[dict[str, Mapped]], paper: str, effort: Effort) -> list[Row]:
    """Compare the best of the three strategies with both baselines, on all links and on network links."""
    rows = []
    few, many = sizes(effort)[0], sizes(effort)[-1]
    for metric, links in (("worst", "worst congestion"), ("network", "worst network congestion")):
        for baseline in ("in-order", "random"):
            values = [change(one, best_of_three(one), baseline, metric) for one in found]
            rows.append(
                Row(
                    what=f"{matrix}: best of three at {few} to {many} ranks, {links}",
                    ours=span(values),
                    baseline=baseline,
                    paper=paper,
                    why=NETWORK,
                )
            )
            rows.append(
                Row(
                    what=f"{matrix}, {many} ranks: ours, {links}",
                    ours=change(found[-1], OURS, baseline, metric),
                    baseline=baseline,
                )
            )
    return rows


def rcm_row(matrix: str, found: list[dict[str, Mapped]], paper: str) -> Row:
    """Count how often greedy beats RCM."""
    better = sum(one["greedy"].network < one["rcm"].network for one in found)
    return Row(
        what=f"{matrix}: greedy better than RCM on network congestion",
        ours=f"at {better} of {len(found)} sizes",
        paper=paper,
        why="RCM as printed leaves no edge between hosts on a switched network: hosts come in reversed "
        "order, which on this cabling is a good one",
    )


def time_rows(found: list[dict[str, Mapped]], paper: str) -> list[Row]:
    """Return processor times of the three strategies over all sizes."""
    return [
        Row(
            what=f"{name}, time",
            ours=span([one[name].seconds for one in found]),
            baseline="seconds",
            paper=f"{paper}-seconds-{name}",
            why="another machine; distances and routes apart",
        )
        for name in THREE
    ]
