"""Figures in docs/explanation/simulation.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.documented.passage import Passage, Record

PAGE = "docs/explanation/simulation.md"
SIMGRID = "simgrid.json"
CASES = (
    ("a message at a time over one switch: a byte, 2 kB, 1 MB | last", "one-link", "last", 4),
    ("two hosts send 4 and 8 MiB to a third | last", "two-flows", "last", 3),
    ("ring of nine, each sends 1 MiB to the next, second or third | last", "ring", "last", 4),
    ("all to all, 1 MiB a pair, 16 hosts of a fat tree by its tables | last", "fat-tree", "last", 4),
    (
        "each of 64 hosts of an 8 x 8 torus sends 128 KiB to eight drawn ones | last",
        "uniform-torus",
        "last",
        3,
    ),
    ("four hosts of a switch and one of the next send 1 MiB to a sixth | last", "parking-lot", "last", 3),
)
"""Beginning of a row, case, and decimals of its milliseconds."""


def both(case: str, which: str) -> Callable[[Record], Sequence[object]]:
    """Return what gives our time in ms, over SimGrid's, and over SimGrid's with equal weights."""

    def values(found: Record) -> Sequence[object]:
        one = found["cases"][case][which]
        ours = one["ours"]
        return [1e3 * ours, ours / one["with_latency"], ours / one["without_latency"]]

    return values


def torus(*names: str) -> Callable[[Record], Sequence[object]]:
    """Return what gives the mean on the torus with other buffers and lanes, over that with equal weights."""
    return lambda found: [found["torus_mean_over_equal_weights"][name] for name in names]


PASSAGES = (
    *(
        Passage(f"| {text} | {{:.{digits}f}} ms | {{:.3f}} | {{:.3f}} |", SIMGRID, both(case, which))
        for text, case, which, digits in CASES
    ),
    *(
        Passage(f"| {{:.{digits}f}} ms | {{:.3f}} | {{:.3f}} |\n{after}", SIMGRID, both(case, "mean"))
        for case, digits, after in (
            ("two-flows", 3, "| ring"),
            ("ring", 4, "| all to all"),
            ("fat-tree", 4, "| each of 64"),
            ("uniform-torus", 3, "| four hosts"),
            ("parking-lot", 3, "\nWhy they differ"),
        )
    ),
    Passage(
        "the mean is {:.2f} of that with equal weights",
        SIMGRID,
        lambda found: [
            found["cases"]["ring"]["mean"]["with_latency"] / found["cases"]["ring"]["mean"]["without_latency"]
        ],
    ),
    Passage(
        "and the mean is {:.0f}% lower. The more flows",
        SIMGRID,
        lambda found: [100 - 100 * both("parking-lot", "mean")(found)[2]],  # type: ignore[operator]
    ),
    Passage(
        "the mean is {:.2f} times SimGrid's with 2 packets a channel, where links wait for room, "
        "{:.2f} with 16, and {:.2f} with 512",
        SIMGRID,
        torus("2 packets", "16 packets", "512 packets"),
    ),
    Passage(
        "waits behind one that wants another link: {:.2f} times on the torus", SIMGRID, torus("one lane")
    ),
)
