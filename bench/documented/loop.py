"""Figures in docs/explanation/measured-steps.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from bench.documented.passage import Passage, Record

PAGE = "docs/explanation/measured-steps.md"
LOOP, SIMULATED = "loop.json", "loop_simulated.json"
PROGRAMS = {"halo exchange": "halo", "all-to-all": "all-to-all"}


def order(program: str, name: str) -> Callable[[Record], Sequence[object]]:
    """Return what reads an order's estimate, and the median, least and most measured seconds."""

    def values(found: Record) -> Sequence[object]:
        one = found["programs"][program]["orders"][name]
        return [one[f"{key}_seconds"] for key in ("congestion", "median", "min", "max")]

    return values


def drawn(program: str) -> Callable[[Record], Sequence[object]]:
    """Return what reads the same of all random orders, the first two as medians of them."""

    def values(found: Record) -> Sequence[object]:
        orders = found["programs"][program]["orders"]
        rows = [row for name, row in orders.items() if name.startswith("random")]
        return [
            median(row["congestion_seconds"] for row in rows),
            median(row["median_seconds"] for row in rows),
            min(row["min_seconds"] for row in rows),
            max(row["max_seconds"] for row in rows),
        ]

    return values


def correlations(metric: str) -> Callable[[Record], Sequence[object]]:
    """Return what reads the rank correlation of a metric for both programs."""
    return lambda found: [one["spearman_with_median_seconds"][metric] for one in found["programs"].values()]


def shares(of: str) -> Callable[[Record], Sequence[object]]:
    """Return what reads the measured step of the placed order over others, and the estimated one."""
    return lambda found: [
        one[of][key] for one in found["programs"].values() for key in ("median_seconds", "congestion_seconds")
    ]


def over_estimate(found: Record) -> Sequence[object]:
    """Return the least and most that a measured step takes over its estimate."""
    ratios = [
        one["median_seconds"] / one["congestion_seconds"]
        for program in found["programs"].values()
        for one in program["orders"].values()
    ]
    return [min(ratios), max(ratios)]


def headers(found: Record) -> Sequence[object]:
    """Return the most of counted over estimated bytes."""
    programs = found["programs"].values()
    return [max(one["counted_over_estimated"] for each in programs for one in each["orders"].values())]


PASSAGES = (
    *(
        Passage(f"| {text}, {name} | {{:.2f}} s | {{:.2f}} s ({{:.2f}} to {{:.2f}} s) |", LOOP, values)
        for text, program in PROGRAMS.items()
        for name, values in (
            ("in order", order(program, "in order")),
            ("placed", order(program, "placed")),
            ("at random", drawn(program)),
        )
    ),
    Passage(
        "of congestion is {:.2f} (halo exchange) and {:.2f} (all-to-all)",
        LOOP,
        correlations("congestion_seconds"),
    ),
    Passage("of hop-bytes {:.2f} and {:.2f}", LOOP, correlations("hop_bytes")),
    Passage(
        "{:.2f} of the time in order (estimate: {:.2f}), the all-to-all {:.2f} ({:.2f})",
        LOOP,
        shares("placed_over_in_order"),
    ),
    Passage(
        "{:.2f} ({:.2f}) and {:.2f} ({:.2f}) of the median random order", LOOP, shares("placed_over_random")
    ),
    Passage("{:.2f} to {:.2f} times its estimate", LOOP, over_estimate),
    Passage(
        "each other take {:.2f} times the estimate",
        LOOP,
        lambda found: [found["pair"]["median_seconds"] / found["pair"]["congestion_seconds"]],
    ),
    Passage("at most {:.2f} times the estimated bytes", LOOP, headers),
    Passage("takes {:.2f} to {:.2f} times the estimate", SIMULATED, over_estimate),
    Passage(
        "congestion's rank correlation with it is {:.2f} and {:.2f}",
        SIMULATED,
        correlations("congestion_seconds"),
    ),
    Passage(
        "{:.2f} of the time in order for the halo exchange (estimate: {:.2f}), {:.2f} for the all-to-all "
        "({:.2f})",
        SIMULATED,
        shares("placed_over_in_order"),
    ),
)
