"""Figures in docs/explanation/simulation-evidence.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench.documented.passage import Passage, Record, row

PAGE = "docs/explanation/simulation-evidence.md"
TIME = "simulated time"
METRICS = {
    "network congestion times hop-bytes": "network congestion times hop-bytes",
    "mean congestion": "mean congestion",
    "congestion, in the order of `almanac map`": "congestion as `almanac map` orders",
    "congestion": "congestion",
    "hop-bytes": "hop-bytes",
    "mapping coefficient": "mapping coefficient",
    "dilation of pairs": "dilation of pairs",
    "congestion on all shortest paths": "congestion on shortest paths",
    "largest dilation": "largest dilation",
}
"""Name in the record by name in the table."""
FABRICS = (
    "irregular, up*/down*",
    "torus 4x4x4, dimension order",
    "fat tree, tables of a subnet manager",
)
HALF = "the faster half of every case"
OBJECTIVES = {
    "`congestion+hop-bytes`": "congestion+hop-bytes",
    "`congestion` (the default)": "congestion",
    "`hop-bytes`": "hop-bytes",
    "`mean-congestion`": "mean-congestion",
    "`mapping-coefficient`": "mapping-coefficient",
}


def predictor(metric: str) -> Callable[[Record], list[float]]:
    """Return a function that reads a metric's row: rho with its interval, in parts, and what it costs."""

    def values(found: Record) -> list[float]:
        whole = row(found, f"all cases: {metric}, rho", TIME).replace("(", "").replace(")", "").split()
        costs = row(found, f"the placement that {metric} puts first").split()
        return [
            *(float(whole[word].rstrip(";")) for word in (0, 1, 3)),
            *(row(found, f"{case}: {metric}, rho", TIME) for case in (HALF, *FABRICS)),
            float(costs[0]),
            float(costs[-1]),
        ]

    return values


def objective(name: str) -> Callable[[Record], list[float]]:
    """Return a function that reads an objective's row: mean and largest of all cases, means by fabric."""

    def values(found: Record) -> list[float]:
        mean, largest = row(found, f"all cases: {name}").split(";")[0].split(", at most ")
        return [
            float(mean),
            float(largest),
            *(float(row(found, f"{fabric}: {name}").split(",")[0]) for fabric in FABRICS),
        ]

    return values


def figures() -> Iterator[Passage]:
    """Yield the rows of both tables, and the speeds."""
    for shown, metric in METRICS.items():
        fields = "{:.3f} ({:.3f} to {:.3f}) | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.1%} | {:.0%} |"
        yield Passage(f"| {shown} | {fields}", "simulation/correlation.json", predictor(metric))
    for shown, name in OBJECTIVES.items():
        fields = "{:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} |"
        yield Passage(f"| {shown} | {fields}", "simulation/objectives.json", objective(name))
    yield Passage(
        "| ranks in order | {} | {} | | | |",
        "simulation/objectives.json",
        lambda found: row(found, "all cases: ranks in order").split(", at most "),
    )
    yield Passage(
        "the trace of CG takes {:.1f} s by packets and {:.1f} s flit by flit",
        "simulation/speed.json",
        lambda found: [row(found, f"CG's trace by {name}: time") for name in ("packets", "flits")],
    )
    hops = ("fat tree, 64 hosts", "CG's trace by packets", "torus 8x8x8", "fat tree, 512 hosts")
    yield Passage(
        "Packets make {:.1f} million hops per second on 64 hosts, {:.1f} million with the trace of CG, "
        "and on 512 hosts {:.1f} (torus) to {:.1f} million (fat tree)",
        "simulation/speed.json",
        lambda found: [row(found, f"{name}: packet hops") for name in hops],
    )
    yield Passage(
        "missed by adaptive paths on a torus ({:.1f}) and by 4,096 hosts ({:.2f})",
        "simulation/speed.json",
        lambda found: [
            row(found, f"{name}: packet hops") for name in ("torus 8x8x8, adaptive", "fat tree, 4,096 hosts")
        ],
    )


PASSAGES = tuple(figures())
