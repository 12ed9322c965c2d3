"""Figures in docs/explanation/metrics-and-bounds.md."""

from __future__ import annotations

from collections.abc import Callable

from bench.documented.passage import Passage, Record
from bench.quality.bounds import BEST

PAGE = "docs/explanation/metrics-and-bounds.md"
DIRECT = ("torus", "mesh", "percs", "hypercube")
"""Beginnings of the names of instances on direct networks."""


def row(metric: str, *names: str) -> Callable[[Record], list[float]]:
    """Return a function that reads the mean of all instances, then small cases: number, met, and means."""
    return lambda found: [
        found["summary"][metric]["geometric_mean"],
        found["small"][metric][BEST]["at_optimum"],
        found["small"][metric][BEST]["cases"],
        *(found["small"][metric][name]["geometric_mean"] for name in (BEST, *names)),
    ]


def direct(found: Record) -> list[float]:
    """Return the least and the largest ratio of the worst network link on direct networks."""
    ratios = [
        min(one["ratios"]["network_congestion_seconds"].values())
        for name, one in found["instances"].items()
        if name.startswith(DIRECT)
    ]
    return [min(ratios), max(ratios)]


PASSAGES = (
    Passage(
        "on {} instances, and exact optima of {} small cases",
        "bounds.json",
        lambda found: [len(found["instances"]), found["small"]["hop_bytes"][BEST]["cases"]],
    ),
    Passage(
        "it is the best bound on the worst network link of {} of the instances",
        "bounds.json",
        lambda found: [found["summary"]["network_congestion_seconds"]["best_of"]["detours"]],
    ),
    Passage("took at most {:.1f} s", "bounds.json", lambda found: [
        max(one["seconds"] for one in found["instances"].values())
    ]),
    Passage(
        "| hop-bytes | {:.2f} | {} of {} | {:.2f} | common-partners {:.2f}, gilmore-lawler {:.2f}, "
        "nested-cuts {:.2f}, projection {:.2f}, all-to-all {:.2f} |",
        "bounds.json",
        row("hop_bytes", "common-partners", "gilmore-lawler", "nested-cuts", "projection", "all-to-all"),
    ),
    Passage(
        "| worst link | {:.2f} | {} of {} | {:.2f} | injection {:.2f}, ejection {:.2f}, total-work {:.2f} |",
        "bounds.json",
        row("congestion_seconds", "injection", "ejection", "total-work"),
    ),
    Passage(
        "| worst network link | {:.2f} | {} of {} | {:.2f} | injection {:.2f}, total-work {:.2f}, "
        "routed-cuts {:.2f} |",
        "bounds.json",
        row("network_congestion_seconds", "injection", "total-work", "routed-cuts"),
    ),
    Passage("the best placements known take {:.1f} to {:.1f} times", "bounds.json", direct),
)  # fmt: skip
