"""Figures in docs/explanation/papers/orduna-2004.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from bench.documented.passage import Passage, Record, row

PAGE = "docs/explanation/papers/orduna-2004.md"
TABLES, SEEDS = "papers/2004-table-2.json", "papers/2004-figure-7.json"
RUNS, EQUAL = "simulation/2004-figures-8-13.json", "simulation/2004-equal-time.json"
SEARCHES = {
    "as printed": "the paper's search as printed",
    "its coefficient, thoroughly": "the paper's coefficient minimised thoroughly",
    "our search": "ours",
}
EQUAL_SEARCHES = {
    "as printed": "the paper's search as printed",
    "new seeds": "the paper's search from new seeds for the CPU time of ours",
    "new seeds, 4,000 failures": "the same with 4,000 failures in a row",
    "its coefficient, thoroughly": "the paper's coefficient minimised thoroughly",
    "our search": "ours",
    "as printed, by bytes": "the paper's search as printed, counting bytes",
}
LOCAL, HALF = "best random mapping with locality", "best random mapping with locality of half of the ranks"
COUNT = "{} of {}"
SPAN, SPAN_1 = "{:+.0%} ({:+.0%} to {:+.0%})", "{:+.1%} ({:+.1%} to {:+.1%})"
Key = tuple[str, str | None]
"""Case and baseline of a row; no baseline: the only row of the case."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?%?")


def numbers(text: object) -> list[float]:
    """Return the numbers of a cell, such as ``18 of 20 (90%)``, without those in brackets."""
    return [_number(one) for one in _NUMBER.findall(re.sub(r"\(.*?\)", "", str(text)))]


def _number(text: str) -> float:
    if text.isdigit():
        return int(text)
    value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    return round(value, 5) + 0.0  # no minus zero


def cells(text: str, record: str, *rows: Key) -> Passage:
    """Return a passage whose values are the numbers of some rows, in their order."""
    return Passage(text, record, partial(_values, rows))


def _values(rows: Sequence[Key], found: Record) -> list[float]:
    return [one for what, baseline in rows for one in numbers(row(found, what, baseline))]


def _other_roots(found: Record) -> list[float]:
    """Return the least and most entries of Table 2 that differ with a root that cannot be the paper's."""
    rows = [one for one in found["rows"] if one["what"].startswith("root") and not one["paper"]]
    counts = [numbers(one["ours"])[0] for one in rows]
    return [min(counts), max(counts)]


def _networks_by_flits(found: Record) -> list[str]:
    """Return the number of networks simulated flit by flit, and of all, from the setting of the record."""
    return re.findall(r"(\d+) of (\d+) \(\d+%\) networks flit by flit", found["setting"])[0]  # type: ignore[no-any-return]


def _of_cg(short: str, called: str) -> tuple[Passage, ...]:
    """Return the rows of Figures 8 and 11 of one search, offered four times and all at once."""
    enough, gain, most, often, every = (
        [f"{load}: {called}, {what}" for load in ("CG", "CG, all messages at once")]
        for what in (
            "networks with 60% more throughput or more",
            "throughput",
            "largest gain of throughput over the networks",
            "networks with 400% more throughput or more",
            "networks with more throughput than every random mapping",
        )
    )
    both, best = f"{COUNT}, {SPAN}; at once {COUNT}, {SPAN} |", f"{{:+.0%}}, {{:+.0%}}, {COUNT}"
    local = [(one, LOCAL) for pair in zip(enough, gain, strict=True) for one in pair]
    over_random = [(one, None) for pair in zip(most, often, strict=True) for one in pair]
    return (
        cells(f"| at least 60% more | {short}: {both}", RUNS, *local),
        cells(f"| the same, half of the ranks | {short}: {both}", RUNS, *((one, HALF) for one in enough)),
        cells(f"| up to 400% more | {short}: {best}; at once {best} |", RUNS, *over_random),
        cells(
            f"| higher than any random mapping | {short}: {COUNT}; at once {COUNT} |",
            RUNS,
            *((one, None) for one in every),
        ),
    )


def _of_sp(short: str, called: str) -> tuple[Passage, ...]:
    """Return the rows of Figures 9, 10, 12 and 13 of one search."""
    peak, local = f"SP: {called}, peak latency", "lowest of the random mappings with locality"
    lowest = f"SP: {called}, networks with the lowest peak latency"
    highest = f"SP: {called}, networks with the highest traffic at a peak"
    return (
        cells(f"| much lower than any other | {short}: {COUNT} |", RUNS, (lowest, None)),
        cells(f"| much lower than random with locality | {short}: {SPAN_1} |", RUNS, (peak, local)),
        cells(
            f"| random: orders of magnitude higher | {short}: {SPAN_1} |",
            RUNS,
            (peak, "lowest of the random mappings"),
        ),
        cells(f"| highest at traffic peaks | {short}: {COUNT} |", RUNS, (highest, None)),
    )


def _of_others(short: str, called: str) -> tuple[Passage, ...]:
    """Return the rows of IS, LU and MG of one search."""
    return tuple(
        cells(
            f"| {name}: significantly higher | {short}: {SPAN}, more on {COUNT} |",
            RUNS,
            (f"{name}: {called}, throughput; networks where it is more", None),
        )
        for name in ("IS", "LU", "MG")
    )


def _of_coefficients(short: str, called: str) -> Passage:
    what = f"CG: {called}, mapping coefficient; networks where it is less"
    return cells(f"| the search minimises it | {short}: {SPAN}, lower on {COUNT} |", RUNS, (what, None))


def _of_flits(program: str, short: str, called: str) -> Passage:
    """Return the row of one search flit by flit, beside the same networks by packets."""
    what = f"{program}, flit by flit: {called}, throughput"
    says = "at least 60% more" if program == "CG" else "best at traffic peaks"

    def values(found: Record) -> list[float]:
        (one,) = [one for one in found["rows"] if one["what"] == what]
        return [*numbers(one["ours"]), *numbers(one["baseline"])]

    return Passage(f"| {program}: {says} | {short}: {SPAN}; by packets {SPAN} |", RUNS, values)


def _of_equal_time(short: str, called: str) -> tuple[Passage, ...]:
    """Return the rows of one search at equal CPU time, with CG and with SP."""
    seconds = "{:.3f} s ({:.3f} s to {:.3f} s)"
    return tuple(
        cells(
            f"| {says} ({short}) | {program}: {seconds}; {COUNT}, {span}; coefficient {SPAN} |",
            EQUAL,
            (f"{program}: {called}, CPU time", None),
            (f"{program}: {called}, networks with {networks}", None),
            (f"{program}: {called}, {value}", None),
            (f"{program}: {called}, mapping coefficient", None),
        )
        for program, says, networks, value, span in (
            ("CG", "at least 60% more", "60% more throughput or more", "throughput", SPAN),
            ("SP", "much lower", "the lowest peak latency", "peak latency", SPAN_1),
        )
    )


def _of_failures(failures: str) -> Passage:
    """Return the row of the paper's search from new seeds, on Figure 7's setting."""
    called = f"{failures} failures, new seeds in the CPU time of ours"
    return cells(
        f"| the same (new seeds, {failures} failures) | {SPAN_1}, {{:.0f}} ({{}} to {{}}) seeds; "
        "ours is lower on {}, equal on {}, higher on {} |",
        SEEDS,
        (f"{called}, mapping coefficient", None),
        (f"{called}, number of seeds", None),
        ("networks where ours is lower, equal, higher", called),
    )


SEARCH = (
    cells(
        "| three seeds reach the minimum | {} on average, {} to {}; {} or more on {:.0%} |",
        SEEDS,
        ("seeds of 10 that reach the lowest value of all", None),
    ),
    cells(
        "| the same, within a hundredth | {} on average, {} to {} |",
        SEEDS,
        ("seeds of 10 within 1% of the lowest value of all", None),
    ),
    *(
        cells(
            f"| the same, {failures} failures | {{}} on average, {{}} to {{}} |",
            SEEDS,
            (f"{failures} failures: seeds of 10 that reach the lowest value of all", None),
        )
        for failures in ("4,000", "20,000")
    ),
    cells(
        "| falls rapidly at first | {:.0%} ({:.0%} to {:.0%}) in a third of {} ({} to {}) iterations |",
        SEEDS,
        ("part of the fall within the first third of the iterations", None),
        ("iterations of a seed", None),
    ),
    cells(
        "| falls to a minimum | by {:.0%} ({:.0%} to {:.0%}); worst {:.0%} ({:.0%} to {:.0%}) above best |",
        SEEDS,
        ("fall from start to end of a seed", None),
        ("worst seed above the best", None),
    ),
    cells(
        "| same or better, at lower cost (10 seeds) | {:.4f} s ({:.4f} s to {:.4f} s) |",
        SEEDS,
        ("CPU time of 10 seeds", None),
    ),
    cells(
        f"| the same | our search: {{:.2f}} s ({{:.2f}} s to {{:.2f}} s), {SPAN_1} |",
        SEEDS,
        ("CPU time of ours", None),
        ("ours, mapping coefficient", None),
    ),
    _of_failures("40"),
    _of_failures("4,000"),
)
PASSAGES = (
    Passage(
        "| 0-2-6-4-1, 0-2-1, 0-4-6-2-1, 0-4-1; two are shortest | {} |",
        TABLES,
        lambda found: [row(found, "root 6: links from node 0 to node 1, with their share of the traffic")],
    ),
    cells(
        "| 10 x 10 distances (root N6; N3; others) | {} of {} differ; {} of {}",
        TABLES,
        ("root 6: entries of Table 2 that differ", None),
        ("root 3: entries of Table 2 that differ", None),
    ),
    Passage("; {} to {} |", TABLES, _other_roots),
    *SEARCH,
    Passage("{} of the {} networks were also simulated flit by flit", RUNS, _networks_by_flits),
    *(one for pair in SEARCHES.items() for make in (_of_cg, _of_sp, _of_others) for one in make(*pair)),
    *(_of_coefficients(*pair) for pair in SEARCHES.items()),
    *(_of_flits(program, *pair) for program in ("CG", "SP") for pair in SEARCHES.items()),
    *(one for pair in EQUAL_SEARCHES.items() for one in _of_equal_time(*pair)),
)
