"""Figures in docs/papers/hoefler-snir-2011.md."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bench.documented.figure import Figure, Record, row

PAGE = "docs/papers/hoefler-snir-2011.md"
Key = tuple[str, str | None]
"""Case and baseline of a row; no baseline: the only row of the case."""


def cells(text: str, record: str, *rows: Key) -> Figure:
    """Return a passage whose values are those of some rows of a record, in their order."""
    return Figure(text, f"papers/2011-{record}.json", partial(_values, rows))


def _values(rows: Sequence[Key], found: Record) -> list[object]:
    return [row(found, what, baseline) for what, baseline in rows]


def _pair(text: str, case: str, *more: Key) -> Figure:
    return cells(text, "examples", (f"{case}: congestion", None), (f"{case}: largest dilation", None), *more)


def _of_matrix(label: str, case: str) -> Figure:
    values = [(f"{case}: {what} {when} RCM", None) for what in ("bandwidth", "profile") for when in WHEN]
    text = "bandwidth {:.0f} before, {:.0f} after; profile {:,.0f} before, {:,.0f} after |"
    return cells(f"{label} | pictures without numbers | {text}", "figure-3", *values)


WHEN = ("before", "after")
EXAMPLES = (
    _pair("congestion 2, dilation 3 | congestion {:.0f}, dilation {:.0f} |", "Figure 1(c)"),
    _pair("better mapping | congestion 1, dilation 1 | congestion {:.0f}, dilation {:.0f} |", "Figure 1(d)"),
    *(
        _pair("solves Figure 1 | congestion {:.0f}, dilation {:.0f} |", f"{name} from vertex 100")
        for name in ("greedy", "greedy (last)", "greedy (start)")
    ),
    cells(
        "lowest {:.2f}, predicted {:.2f} |",
        "examples",
        ("Theorem 1: lowest congestion of all mappings", None),
        ("Theorem 1: P^3 + L / P with the smallest cut L", None),
    ),
    cells(
        "lowest {:,.0f}, predicted {:,.0f} |",
        "examples",
        ("Theorem 1: lowest congestion with s or t off the bar", None),
        ("Theorem 1: P^4", None),
    ),
    _of_matrix("F1 on 512 processes", "G: F1 on 512 ranks"),
    _of_matrix("8 x 8 x 8 torus", "H: 8 x 8 x 8 torus"),
)
GROUPS = tuple(
    cells(
        f"| {name}, {slots} slots a host | no numbers | as described {{:+.0%}}, our default {{:+.1%}} |",
        "multicore",
        *((f"{name}, 1024 ranks, {slots} a host: {way}, bytes between hosts", "blocks") for way in WAYS),
    )
    for WAYS in (("paper", "improved"),)
    for name in ("nlpkkt", "F1", "audikw")
    for slots in (4, 8, 16)
)
FIGURES = (*EXAMPLES, *GROUPS)
