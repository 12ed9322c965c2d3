"""Figures in docs/explanation/papers/hoefler-snir-2011.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from bench.documented.passage import Passage, Record, row

PAGE = "docs/explanation/papers/hoefler-snir-2011.md"
Key = tuple[str, str | None]
"""Case and baseline of a row; no baseline: the only row of the case."""


def cells(text: str, record: str, *rows: Key) -> Passage:
    """Return a passage whose values are those of some rows of a record, in their order."""
    return Passage(text, f"papers/2011-{record}.json", partial(_values, rows))


def _values(rows: Sequence[Key], found: Record) -> list[object]:
    return [row(found, what, baseline) for what, baseline in rows]


def _pair(text: str, case: str, *more: Key) -> Passage:
    return cells(text, "examples", (f"{case}: congestion", None), (f"{case}: largest dilation", None), *more)


def _of_matrix(label: str, case: str) -> Passage:
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
READINGS = {"greedy": "`sender`", "greedy (last)": "`last`", "greedy (start)": "`start`"}
MATRICES = ("nlpkkt", "F1", "audikw")
NUMBERINGS = ("shuffled", "METIS")
VIEWS = {
    "without, by Algorithm 3": "without TA, by Algorithm 3",
    "without": "without TA, exact",
    "with threshold accepting": "with TA, exact",
    "with, by Algorithm 3": "with TA, by Algorithm 3",
}


def _both(label: str, record: str, *cases: str, form: str = "{:+.0%}") -> Passage:
    """Return a row with values for each numbering, for which `cases` have {}."""
    cell = " / ".join([form] * len(cases))
    keys = [(case.format(order), None) for order in NUMBERINGS for case in cases]
    return cells(f"{label} | shuffled {cell}, METIS {cell} |", record, *keys)


def _torus_congestion() -> Iterator[Passage]:
    """Yield the rows of Figure 5(a) for the worst link."""
    claims = [(name, f"greedy {near}, 12^3 | -32%") for name, near in READINGS.items()]
    claims += [("recursive", "recursive, 12^3 | -44%"), ("rcm", "RCM, 12^3 | slightly worse than greedy")]
    for name, says in claims:
        for view, text in VIEWS.items():
            yield _both(f"| {text}: {says}", "figure-5a", f"12^3, {{}}: {name}, {view}")
    for name, near in READINGS.items():
        for view in ("without, by Algorithm 3", "with threshold accepting"):
            says = f"| {VIEWS[view]}: greedy {near}, 3^3 | -27%"
            yield _both(says, "figure-5a", f"3^3, {{}}: {name}, {view}")
    for way, text in (("worst congestion", "exact"), ("by Algorithm 3", "by Algorithm 3")):
        yield _both(f"| our search, 12^3, {text} | no such search", "figure-5a", f"12^3, {{}}: ours, {way}")


def _torus_trends() -> Iterator[Passage]:
    for order in NUMBERINGS:
        for name, near in {**READINGS, "recursive": ""}.items():
            label = f"| {order}: {name.split()[0]} {near}".rstrip()
            what = f"{order}: {name}, without, by Algorithm 3, by size"
            yield cells(f"{label} | grows with the size | {{}} |", "figure-5a", (what, None))
        for name, near in READINGS.items():
            what = f"{order}: RCM worse than {name}, without, by Algorithm 3"
            label = f"| {order}: RCM, greedy {near} | RCM slightly worse than greedy in all"
            yield cells(f"{label} | {{}} |", "figure-5a", (what, None))


def _torus_dilations() -> Iterator[Passage]:
    """Yield dilations by bytes and by edges, without and with threshold accepting."""
    claims = {"in-order": "initial | 9.00", **{n: f"greedy {near} | 9.03" for n, near in READINGS.items()}}
    claims |= {"rcm": "RCM | 7.02", "recursive": "recursive | 4.50"}
    for name, says in claims.items():
        for way in ("",) if name == "in-order" else (", without", ", with threshold accepting"):
            text = {"": "", ", without": "without TA: "}.get(way, "with TA: ")
            cases = [f"12^3, {{}}: {name}, dilation{kind}{way}" for kind in ("", " of an edge")]
            yield _both(f"| {text}{says}", "figure-5a", *cases, form="{:.2f}")
    cases = [f"12^3, {{}}: ours, dilation{kind}" for kind in ("", " of an edge")]
    yield _both("| our search | no such search", "figure-5a", *cases, form="{:.2f}")


def _torus_accepting() -> Iterator[Passage]:
    """Yield the gains of threshold accepting on Algorithm 3."""
    for name, label in {
        "greedy": "greedy `sender`",
        "greedy (start)": "greedy `start`",
        "recursive": "recursive",
    }.items():
        for seconds in (5, 30):
            keys = []
            for order in NUMBERINGS:
                case = f"12^3, {order}: {name}, {seconds} s on Algorithm 3"
                against = f"in order, {order} numbering"
                keys += [
                    (f"{case}, gain", "without"),
                    (f"{case}, by Algorithm 3", against),
                    (f"{case}, dilation of an edge", "hops"),
                    (f"{case}, proposals", None),
                ]
            cell = "{:+.1%} to {:+.0%} (dilation {:.2f}, {} proposals)"
            says = f"| {label}, {seconds} s | 2% to 9% less"
            yield cells(f"{says} | shuffled {cell}, METIS {cell} |", "figure-5a", *keys)


def _all_starts() -> Iterator[Passage]:
    """Yield greedy from every host of the largest torus."""
    for order, near in (("shuffled", "sender"), ("shuffled", "start"), ("METIS", "sender")):
        case = f"12^3, {order}: greedy near={near} from all hosts"
        ends = ("worst congestion by Algorithm 3", "worst congestion", "dilation of an edge", "time")
        text = "{:+.0%}, exact {:+.0%}; dilation {:.2f}; {:.0f} s |"
        yield cells(
            f"| {order}, `{near}` | -32% | {text}", "starts", *((f"{case}, {end}", None) for end in ends)
        )


def _times() -> Iterator[Passage]:
    """Yield the times of the strategies."""
    for name, says in (
        ("rcm", "RCM | at most 0.01 s"),
        ("greedy", "greedy `sender` | up to 1 s"),
        ("greedy (start)", "greedy `start` | up to 1 s"),
        ("recursive", "recursive | up to 1 s"),
    ):
        keys = [(f"12^3, {order}: {name}, time", "seconds") for order in NUMBERINGS]
        yield cells(f"| 12^3 torus, {says} | shuffled {{:.2g}} s, METIS {{:.2g}} s |", "figure-5a", *keys)
    for figure, key, labels in (
        ("figure-5b", "{}, time at 64 to 1792 ranks", ("PERCS", "0.8 to 22 s", "4.51 to 7.51 s")),
        ("figure-5c", "{}, time", ("Juropa", "0.16 to 2.6 s", "0.63 to 1.21 s")),
        ("figure-6ab", "{}, time", ("Ranger", "0.26 to 3.85 s", "0.76 to 1.5 s")),
    ):
        machine, greedy, recursive = labels
        for name, says in {
            "greedy": f"greedy `sender` | {greedy}",
            "greedy (start)": f"greedy `start` | {greedy}",
            "recursive": f"recursive | {recursive}",
            "rcm": "RCM | less than 0.01 s",
        }.items():
            text = f"| {machine}, {says} | {{:.2g}} to {{:.2g}} s |"
            yield _range(text, figure, key.format(name), "seconds")


def _percs() -> Iterator[Passage]:
    """Yield the rows of Figure 5(b)."""
    names = {
        **READINGS,
        "rcm": "RCM",
        "recursive": "recursive",
        "random": "random placement",
        "ours": "our search",
    }
    for ending, measure in (("", "exact"), (" by Algorithm 3", "by Algorithm 3")):
        for name, near in names.items():
            label = f"greedy {near}" if name in READINGS else near
            keys: list[Key] = [
                (f"{one}, 1792 ranks: {name}, worst congestion{ending}", "in-order") for one in MATRICES
            ]
            claim = {"random": "not given", "ours": "no such search"}.get(name, "up to -80%")
            says = f"| {label}, 1,792 ranks, {measure} | {claim}"
            yield cells(f"{says} | nlpkkt {{:+.0%}}, F1 {{:+.0%}}, audikw {{:+.0%}} |", "figure-5b", *keys)
    for name, says in {
        "recursive": "recursive | 1.82",
        **{n: f"greedy {near} | 2.89" for n, near in READINGS.items()},
        "random": "random placement | not given",
    }.items():
        keys = [
            (f"{one}, 1728 ranks: {name}, average dilation{kind}", "hops")
            for one in MATRICES
            for kind in ("", " of an edge")
        ]
        cell = "nlpkkt {:.2f} / {:.2f}, F1 {:.2f} / {:.2f}, audikw {:.2f} / {:.2f}"
        yield cells(f"| dilation, 1,728 ranks: {says} | {cell} |", "figure-5b", *keys)
    for name, near in READINGS.items():
        keys = [(f"{one}: RCM worse than {name}, without threshold accepting", None) for one in MATRICES]
        says = f"| RCM, greedy {near} | RCM consistently slightly worse"
        yield cells(f"{says} | nlpkkt {{}}, F1 {{}}, audikw {{}} |", "figure-5b", *keys)
    for name, near in {**READINGS, "recursive": ""}.items():
        for one in MATRICES:
            what = f"{one}: {name}, worst congestion by size, without"
            label = f"| {one}, {name.split()[0]} {near}".rstrip()
            yield cells(f"{label} | grows with the size | {{}} |", "figure-5b", (what, None))


FAT_TREES = {
    "figure-5c": ("-40% to -61%, grows", "significantly better", ("audikw",)),
    "figure-6ab": ("up to -50%", "again significantly better", MATRICES),
}
ORDERS = ("cabled", "names", "racks")
LINKS = {
    ("worst network link", "in-order"): "between switches",
    ("worst network link", "random"): "between switches, over random",
    ("worst link", "in-order"): "all links",
    ("worst link by Algorithm 3", "in-order"): "all links, by Algorithm 3",
}


def _fat_trees(figure: str) -> Iterator[Passage]:
    """Yield the rows of Figure 5(c) or 6(a)."""
    says, better, matrices = FAT_TREES[figure]
    best = "{}, {}: best of the paper's, {} threshold accepting, {}"
    for one in matrices:
        for order in ORDERS:
            for (metric, base), text in LINKS.items():
                what = best.format(one, order, "without", metric)
                yield cells(f"| {one}, {order}, {text} | {says} | {{}} |", figure, (what, base))
        what = best.format(one, "cabled", "with", "worst network link")
        yield cells(
            f"| {one}, cabled, between switches, with TA | {says} | {{}} |", figure, (what, "in-order")
        )
        what = f"{one}, cabled, 1792 ranks: ours, worst network link"
        label = f"| {one}, cabled, 1,792 ranks, our search, between switches | no such search"
        text = "{:+.0%}, over random {:+.0%}"
        yield cells(f"{label} | {text} |", figure, (what, "in-order"), (what, "random"))
        for name, near in READINGS.items():
            what = f"{one}, {{}}: {name} better than RCM on network congestion, without"
            keys: list[Key] = [(what.format(order), None) for order in ORDERS]
            label = f"| {one}, greedy {near} better than RCM | {better}"
            yield cells(f"{label} | cabled {{}}, names {{}}, racks {{}} |", figure, *keys)


def _juropa_dilations() -> Iterator[Passage]:
    for name, says in {
        "rcm": "RCM | 4.45",
        "rcm (whole)": "RCM (whole) | 4.45",
        **{n: f"greedy {near} | 5.8" for n, near in READINGS.items()},
        "recursive": "recursive | 5.13",
        "in-order": "in order | not given",
        "random": "random placement | not given",
    }.items():
        keys = [
            (f"{order}, 1792 ranks: {name}, dilation{kind}, without", "hops")
            for order in ("cabled", "names", "racks")
            for kind in ("", " of an edge")
        ]
        cell = "cabled {:.2f} / {:.2f}, names {:.2f} / {:.2f}, racks {:.2f} / {:.2f}"
        yield cells(f"| dilation: {says} | {cell} |", "figure-5c", *keys)


def _range(text: str, record: str, what: str, baseline: str | None = None) -> Passage:
    """Return a passage with the two numbers of a row such as ``0.1 to 0.3``."""

    def values(found: Record) -> list[float]:
        return [float(one) for one in row(found, what, baseline).split(" to ")]

    return Passage(text, f"papers/2011-{record}.json", values)


def _surveyor() -> Iterator[Passage]:
    """Yield the rows of Figure 6(c)."""
    each = "nlpkkt {:+.0%}, F1 {:+.0%}, audikw {:+.0%} |"
    for name, near in {**READINGS, "rcm": "RCM", "recursive": "recursive"}.items():
        label = f"greedy {near}" if name in READINGS else near
        for ending, text in ((" by Algorithm 3", "by Algorithm 3"), ("", "exact")):
            what = f"{{}}: {name}, predicted time without threshold accepting{ending}"
            keys: list[Key] = [(what.format(one), "in-order") for one in MATRICES]
            says = f"| predicted, {label}, without TA, {text} | -18% to -32%"
            yield cells(f"{says} | {each}", "figure-6c", *keys)
    here, simulated = "papers/2011-figure-6c.json", "simulation/2011-figure-6c.json"
    for label, what, record in (
        ("predicted, best with TA, exact | -18% to -32%", "best of the paper's, predicted time", here),
        (
            "predicted, our search, by Algorithm 3 | no such search",
            "ours, predicted time by Algorithm 3",
            here,
        ),
        ("predicted, our search, exact | no such search", "ours, predicted time", here),
        ("simulated, best of three | measured -10% to -18%", "best of three, simulated time", simulated),
        (
            "the same placements predicted, exact | -18% to -32%",
            "best of three, time predicted from the worst congestion",
            simulated,
        ),
        ("simulated, our search | no such search", "ours, simulated time", simulated),
    ):
        keys = [(f"{one}: {what}", "in-order") for one in MATRICES]
        yield Passage(f"| {label} | {each}", record, partial(_values, keys))
    gain = "| gain of TA, worst link | 2% to 9% less | {:+.0%} to {:+.0%} |"
    yield _range(gain, "figure-6c", "threshold accepting, worst congestion")
    seconds = "| time of all strategies | 0.34 s | {:.2g} to {:.2g} s |"
    yield _range(seconds, "figure-6c", "time of all three strategies")


PASSAGES = (
    *EXAMPLES,
    *GROUPS,
    *_torus_congestion(),
    *_torus_accepting(),
    *_all_starts(),
    *_torus_trends(),
    *_torus_dilations(),
    *_percs(),
    *_fat_trees("figure-5c"),
    *_juropa_dilations(),
    *_fat_trees("figure-6ab"),
    *_surveyor(),
    *_times(),
)
