"""Figures in docs/explanation/papers/li-2020.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product

from bench.documented.passage import Passage, Record, row

PAGE = "docs/explanation/papers/li-2020.md"
HOP_BYTES, TIMES, SCALE = "papers/2020-figure-2.json", "simulation/2020-figure-3.json", "scale.json"
ALLOCATIONS = ("first nodes", "scattered nodes", "all nodes")
MACHINES = ("full", "quarter")
BASELINES = ("in-order", "round-robin", "greedy", "greedy (last)", "rcm", "rcm (whole)")
PROGRAMS = ("bt", "cg", "lu", "sp", "sweep3d", "snap")
OTHER_GRIDS = ("sweep3d, square grid", "snap, tall grid")
SIZES = ("256", "512", "1024", "2048", "4096")
REPEATED, OURS = "ohtma, repeated", "ours"
EQUAL = "ours against OHTMA repeated, equal time (%)"
AVERAGES = (
    ("5.3, 2(a): BT against in-order", "-29.7%", "bt", "in-order"),
    ("BT against round-robin", "-45.3%", "bt", "round-robin"),
    ("2(d): SP against in-order", "-34.3%", "sp", "in-order"),
    ("SP against round-robin", "-48%", "sp", "round-robin"),
    ("SP against greedy", "-34.2%", "sp", "greedy"),
    ("SP against greedy, nearest to the host used last", "-34.2%", "sp", "greedy (last)"),
    ("SP against RCM", "-44.7%", "sp", "rcm"),
    ("2(b): CG against in-order", "-4%", "cg", "in-order"),
    ("2(c): LU against in-order", "-20.36%", "lu", "in-order"),
    ("LU against greedy", "-12.3%", "lu", "greedy"),
    ("LU against greedy, nearest to the host used last", "-12.3%", "lu", "greedy (last)"),
    ("2(f): Snap against in-order", "-29.6%", "snap", "in-order"),
    ("Snap against round-robin", "-26.7%", "snap", "round-robin"),
    ("Snap against greedy", "-29.5%", "snap", "greedy"),
    ("Snap against greedy, nearest to the host used last", "-29.5%", "snap", "greedy (last)"),
    ("Snap against RCM", "-32.4%", "snap", "rcm"),
    ("2(e): Sweep3D against in-order", "a large improvement", "sweep3d", "in-order"),
    ("Sweep3D against round-robin", "a large improvement", "sweep3d", "round-robin"),
    ("Sweep3D against RCM", "a large improvement", "sweep3d", "rcm"),
    ("Sweep3D against greedy", "worse than greedy", "sweep3d", "greedy"),
    (
        "Sweep3D against greedy, nearest to the host used last",
        "worse than greedy",
        "sweep3d",
        "greedy (last)",
    ),
)
"""Statements on averages over sizes: what, the paper's value, program and baseline."""
SIMULATED = (
    ("5.3, 3(a): BT against in-order", "-13.5%", "bt", "in-order"),
    ("BT against greedy", "-11.6%", "bt", "greedy"),
    ("3(d): SP, baseline not named", "up to -20%", "sp", "in-order"),
    ("3(b): CG, baseline not named", "reduced", "cg", "in-order"),
    ("3(f): Snap against greedy", "-16.7% (-13.2% to -19.5%)", "snap", "greedy"),
    ("3(e): Sweep3D against greedy", "-5.9%", "sweep3d", "greedy"),
)


def percent(change: float) -> str:
    """Return a change in whole percent."""
    return f"{round(change)}%"


def cells(found: Record, table: int, program: str, ranks: str = "") -> list[dict[str, float]]:
    """Return the rows of a program (and a size) in a table by size, values by column."""
    one = found["tables"][table]
    rows = [dict(zip(one["head"], values, strict=True)) for values in one["cells"]]
    return [cell for cell in rows if cell["program"] == program and ranks in ("", cell["ranks"])]


def mean(found: Record, table: int, program: str, column: str) -> str:
    """Return the mean of a column over sizes."""
    values = [cell[column] for cell in cells(found, table, program)]
    return percent(sum(values) / len(values))


def span(found: Record, table: int, program: str, column: str) -> tuple[str, str]:
    """Return the least and the largest value of a column."""
    values = [cell[column] for cell in cells(found, table, program)]
    return percent(min(values)), percent(max(values))


def averages(program: str, name: str, baseline: str) -> Callable[[Record], Sequence[object]]:
    """Return what gives the average change on each allocation."""
    return lambda found: [
        percent(100 * row(found, f"{program}, {where}: {name}", baseline)) for where in ALLOCATIONS
    ]


def simulated(program: str, baseline: str) -> Callable[[Record], Sequence[object]]:
    """Return what gives the mean change of the simulated time and its range on each machine."""
    column = f"OHTMA against {baseline} (%)"
    return lambda found: [
        value
        for table in range(len(MACHINES))
        for value in (mean(found, table, program, column), *span(found, table, program, column))
    ]


def by_size(program: str, ranks: str, table: int) -> Callable[[Record], Sequence[object]]:
    """Return what gives all changes of a program at a size on one allocation."""

    def values(found: Record) -> Sequence[object]:
        (one,) = cells(found, table, program, ranks)
        return [
            *(percent(one[f"OHTMA against {name} (%)"]) for name in BASELINES),
            *(percent(one[f"{name} against in-order (%)"]) for name in (REPEATED, OURS)),
            percent(one[EQUAL]),
        ]

    return values


def simulated_by_size(program: str, ranks: str) -> Callable[[Record], Sequence[object]]:
    """Return what gives the changes of the simulated time on both machines."""
    columns = (
        *(f"OHTMA against {name} (%)" for name in ("in-order", "round-robin", "greedy", "rcm")),
        "ours against OHTMA repeated (%)",
    )

    def values(found: Record) -> Sequence[object]:
        both = [cells(found, table, program, ranks)[0] for table in range(len(MACHINES))]
        return [percent(one[column]) for column in columns for one in both]

    return values


def in_order(program: str) -> Callable[[Record], Sequence[object]]:
    """Return what gives OHTMA against ranks in order at each size on each allocation."""
    return lambda found: [
        percent(one["OHTMA against in-order (%)"])
        for ranks in sizes(program)
        for table in tables(program)
        for one in cells(found, table, program, ranks)
    ]


def sizes(program: str) -> tuple[str, ...]:
    """Return the sizes of a program; BT and SP need squares."""
    return SIZES[::2] if program in ("bt", "sp") else SIZES


def tables(program: str) -> Iterable[int]:
    """Return the allocations of a program; the other grids were run on scattered nodes alone."""
    return (1,) if program in OTHER_GRIDS else range(len(ALLOCATIONS))


def size_row(program: str) -> str:
    """Return the passage of a program in the table of OHTMA against ranks in order."""
    fields = ", ".join("{}" for _ in tables(program))
    shown = {ranks: fields if ranks in sizes(program) else "" for ranks in SIZES}
    return f"| {program} | " + " | ".join(shown.values()) + " |"


def below(found: Record) -> Sequence[object]:
    """Return in how many cases of the six programs OHTMA is below each mapping on each allocation."""
    counts = []
    for table in range(len(ALLOCATIONS)):
        cases = [one for program in PROGRAMS for one in cells(found, table, program)]
        counts += [
            *(sum(one[f"OHTMA against {name} (%)"] < 0 for one in cases) for name in BASELINES),
            sum(all(one[f"OHTMA against {name} (%)"] < 0 for name in BASELINES) for one in cases),
            len(cases),
        ]
    return counts


def equal_time(longer: bool, found: Record) -> Sequence[object]:
    """Return how ours compares at equal time, in cases where it kept the time or took longer.

    Cases, those in which it is lower, equal and higher, and mean, least and largest change.
    """
    changes = []
    for table, program in product(range(len(ALLOCATIONS)), PROGRAMS):
        for one in cells(found, table, program):
            taken = one["ours, equal time: processor seconds"] / one[f"{REPEATED}: processor seconds"]
            if (taken > 1.1) == longer:
                changes.append(round(one[EQUAL], 6))
    return [
        len(changes),
        sum(change < 0 for change in changes),
        sum(change == 0 for change in changes),
        sum(change > 0 for change in changes),
        percent(sum(changes) / len(changes)),
        percent(min(changes)),
        percent(max(changes)),
    ]


def growth(found: Record) -> Sequence[object]:
    """Return round-robin and RCM over ranks in order for LU on scattered nodes, fewest and most ranks."""
    return [
        percent(100 * change_in_order(cells(found, 1, "lu", ranks)[0], name))
        for name in ("round-robin", "rcm")
        for ranks in (SIZES[0], SIZES[-1])
    ]


def change_in_order(one: dict[str, float], name: str) -> float:
    """Return another mapping over ranks in order, minus one."""
    in_order, other = (100 + one[f"OHTMA against {baseline} (%)"] for baseline in ("in-order", name))
    return in_order / other - 1


def costs(program: str, found: Record) -> Sequence[object]:
    """Return mean hop-bytes of the other mappings over ranks in order, on scattered nodes."""
    changes = [
        [100 * change_in_order(one, name) for name in BASELINES[1:]] for one in cells(found, 1, program)
    ]
    return [percent(sum(column) / len(column)) for column in zip(*changes, strict=True)]


def gains(program: str, found: Record) -> Sequence[object]:
    """Return OHTMA with the exact and the printed gain, and repeated, over ranks in order."""
    return [
        value
        for name in ("OHTMA", "ohtma, printed gain", REPEATED)
        for value in averages(program, name, "in-order")(found)
    ]


def seconds(ranks: Sequence[str], found: Record) -> Sequence[object]:
    """Return the processor seconds of OHTMA at these sizes."""
    return [found["curves"]["OHTMA"]["points"][one]["seconds"] for one in ranks]


PASSAGES = (
    *(
        Passage(
            f"| {what} | {said} | first {{}}, scattered {{}}, all {{}} |",
            HOP_BYTES,
            averages(program, "OHTMA", baseline),
        )
        for what, said, program, baseline in AVERAGES
    ),
    Passage(
        "| 5.3: largest reduction of all cases | -43.9% | first {}, scattered {}, all {} |",
        HOP_BYTES,
        lambda found: [
            percent(100 * row(found, f"all programs, {where}: largest reduction of OHTMA", "in-order"))
            for where in ALLOCATIONS
        ],
    ),
    *(Passage(size_row(program), HOP_BYTES, in_order(program)) for program in (*PROGRAMS, *OTHER_GRIDS)),
    *(
        Passage(f"| {program} | {int(ranks):,}" + " | {}" * 9 + " |", HOP_BYTES, by_size(program, ranks, 1))
        for program in (*PROGRAMS, *OTHER_GRIDS)
        for ranks in sizes(program)
    ),
    Passage(
        "".join(f"| {where}" + " | {}" * 7 + " of {} |\n" for where in ALLOCATIONS),
        HOP_BYTES,
        below,
    ),
    *(
        Passage(f"| {name}" + " | {}" * 5 + " | {} to {} |", HOP_BYTES, partial(equal_time, longer))
        for name, longer in (("ours kept the time", False), ("ours took longer", True))
    ),
    Passage("round-robin {} to {}, RCM {} to {}", HOP_BYTES, growth),
    *(
        Passage(f"| {program}, others over in-order" + " | {}" * 5 + " |", HOP_BYTES, partial(costs, program))
        for program in PROGRAMS
    ),
    *(
        Passage(
            f"| {program} | exact {{}}, {{}}, {{}} | printed {{}}, {{}}, {{}} | repeated {{}}, {{}}, {{}} |",
            HOP_BYTES,
            partial(gains, program),
        )
        for program in PROGRAMS
    ),
    *(
        Passage(
            f"| {what} | {said} | full {{}} ({{}} to {{}}), quarter {{}} ({{}} to {{}}) |",
            TIMES,
            simulated(program, baseline),
        )
        for what, said, program, baseline in SIMULATED
    ),
    Passage(
        "| 5.3: largest saving of all cases | -37.3% | full {}, quarter {} |",
        TIMES,
        lambda found: [
            percent(100 * row(found, f"all programs, {machine}: largest saving of OHTMA"))
            for machine in MACHINES
        ],
    ),
    *(
        Passage(
            f"| {program} | {int(ranks):,}" + " | {}; {}" * 5 + " |", TIMES, simulated_by_size(program, ranks)
        )
        for program in PROGRAMS
        for ranks in sizes(program)
    ),
    *(
        Passage(
            f"| 5.3: mapping time, {ranks} processes | {said} | {{:.1g}} s |",
            SCALE,
            partial(seconds, (ranks,)),
        )
        for ranks, said in (("256", "4.7 s"), ("512", "98 s"))
    ),
    Passage(
        "{:.1g} s at 1,024, {:.1g} s at 2,048 and {:.1g} s at 4,096 ranks",
        SCALE,
        partial(seconds, SIZES[2:]),
    ),
)
