"""Show where Tables 1 and 2 agree: the misfit of each over the edges' weight and the spread of the vertices'.

The calibration uses Table 1 alone, which hardly depends on the edges' weight. Here both tables are compared
with the paper's at all points of a grid, for four readings of the loop: the lowest or the highest expansion
first, and one step or all steps of a refinement. The best points are run again with more trials and rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from bench.papers.circuits.calibration import Row, loss, paper_row, row_of
from bench.papers.circuits.experiment import Effort, Parameters, Setting, WorkerPool, loop, machine_of, table
from bench.support.papers import Cell, Figure, Table
from bench.support.plots import Curve, Panel
from mapping.circuits.paper_partition import HIGHEST, LOWEST

EDGE_WEIGHTS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
SPREADS = (0.6, 1.0, 1.4, 1.8, 2.2, 2.6, 3.0)
READINGS = tuple(itertools.product((LOWEST, HIGHEST), (1, None)))
"""Order of the expansions, and steps of a refinement."""
ROWS = {1: (1, 2), 2: (1, 4, 5, 8)}
"""Rows of the grid: those of up to 200 vertices, since larger ones would take most of the time. They have all
three ratios of the speeds in Table 2."""
SCALES = {
    "improvement": 0.05,
    "compute_bound": 0.1,
    "unchanged": 0.1,
    "of_loose_bound": 0.05,
    "variation": 0.1,
}
"""Difference that counts one; wider than the calibration's, as few trials cannot show its shares of 2%."""
TRIALS, FINAL_TRIALS = 6, 16
LARGEST = 300
"""Vertices up to which a row is run for the best points."""
GOOD = 1.0
"""Loss up to which a table counts as matched: differences of one unit on average."""
WHOSE = ("Table 1", "Table 2", "both")


class Point(NamedTuple):
    """A reading of the loop with two parameters, its rows of both tables, and their losses."""

    expansion: str
    steps: int | None
    edge_weight: float
    vertex_spread: float
    rows: dict[str, Row]
    losses: tuple[float, float, float]

    @property
    def at_edge(self) -> bool:
        """True if the point is on the border of the grid."""
        weights, spreads = EDGE_WEIGHTS, SPREADS
        return self.edge_weight in (weights[0], weights[-1]) or self.vertex_spread in (
            spreads[0],
            spreads[-1],
        )


def run(parameters: Parameters, effort: Effort, pool: WorkerPool) -> Iterator[Figure]:
    """Run the grid for each reading, yield the part after each; then the best points again."""
    weights, spreads = (EDGE_WEIGHTS[1:3], SPREADS[2:4]) if effort.small else (EDGE_WEIGHTS, SPREADS)
    rows: dict[int, tuple[int, ...]] = {1: (1,), 2: (1,)} if effort.small else ROWS
    trials, final = (2, 2) if effort.small else (TRIALS, FINAL_TRIALS)
    points: list[Point] = []
    for expansion, steps in READINGS[:2] if effort.small else READINGS:
        for weight, spread in itertools.product(weights, spreads):
            given = replace(parameters, edge_weight=weight, vertex_spread=spread, steps=steps)
            points.append(_point(pool, given, expansion, rows, trials))
        yield _part(points, [], trials, final)
    again: list[Point] = []
    if not effort.small:
        rows = {
            number: tuple(row["row"] for row in table(number) if row["vertices"] <= LARGEST)
            for number in ROWS
        }
    for one in candidates(points):
        given = replace(
            parameters, edge_weight=one.edge_weight, vertex_spread=one.vertex_spread, steps=one.steps
        )
        again.append(_point(pool, given, one.expansion, rows, final))
        yield _part(points, again, trials, final)


def candidates(points: list[Point]) -> list[Point]:
    """Return the best points for both tables and for each of them."""
    found = [least(points, which) for which in (2, 0, 1)]
    return [one for number, one in enumerate(found) if one not in found[:number]]


def least(points: list[Point], which: int) -> Point:
    """Return the point of least loss; `which` as in `WHOSE`."""
    return min(points, key=lambda one: one.losses[which])


def losses(rows: dict[str, Row]) -> tuple[float, float, float]:
    """Return the loss of each table, and their mean."""
    found = []
    for number in (1, 2):
        said = {f"{number}.{row['row']}": paper_row(row) for row in table(number)}
        names = [name for name in said if name in rows]
        found.append(loss([rows[name] for name in names], [said[name] for name in names], SCALES))
    return found[0], found[1], (found[0] + found[1]) / 2


def _point(
    pool: WorkerPool, given: Parameters, expansion: str, rows: dict[int, tuple[int, ...]], trials: int
) -> Point:
    """Run the trials of a point, on the same applications as all others."""
    found: dict[str, Row] = {}
    for number, chosen in rows.items():
        for row in table(number):
            if row["row"] in chosen:
                setting = Setting(
                    machine=machine_of(row), vertices=row["vertices"], parameters=given, expansion=expansion
                )
                found[f"{number}.{row['row']}"] = row_of(pool.run(loop, setting, range(trials)))
    return Point(expansion, given.steps, given.edge_weight, given.vertex_spread, found, losses(found))


def _readings(points: list[Point]) -> dict[str, list[Point]]:
    """Return the points of each reading."""
    found: dict[str, list[Point]] = {}
    for one in points:
        found.setdefault(_name(one), []).append(one)
    return found


def _name(one: Point) -> str:
    return f"{one.expansion} first, {'all steps' if one.steps is None else f'{one.steps} step'}"


def _part(points: list[Point], again: list[Point], trials: int, final: int) -> Figure:
    units = ", ".join(f"{of} ({name})" for name, of in SCALES.items())
    planes = [_plane(name, of) for name, of in _readings(points).items()]
    return Figure(
        title="Where Tables 1 and 2 agree",
        setting=f"Mean weight of edges by spread of the vertices' weights; {trials} trials a row, the same "
        "applications for all; edges' spread, patience and skip probability as listed. Loss: mean square of "
        f"differences from the paper in units of {units}; "
        "both: the mean of the two tables. Rows of the grid: "
        f"{', '.join(f'{number}.{row}' for number, of in ROWS.items() for row in of)}.",
        tables=(_best(points), *([_finalists(again, final), _rows(again)] if again else []), *planes),
        panels=tuple(
            _panel(name, of, which) for name, of in _readings(points).items() for which in range(len(WHOSE))
        ),
        data={
            "points": [_fields(one) for one in points],
            "finalists": [_fields(one) for one in again],
            "matched": sum(max(one.losses[:2]) <= GOOD for one in points),
            "matched_again": sum(max(one.losses[:2]) <= GOOD for one in again),
        },
    )


def _fields(one: Point) -> dict[str, Any]:
    return {**one._asdict(), "rows": {name: row._asdict() for name, row in one.rows.items()}}


def _cells(one: Point) -> tuple[Cell, ...]:
    return _name(one), one.edge_weight, one.vertex_spread, *one.losses


def _best(points: list[Point]) -> Table:
    """Make the table of the best point of each reading for each table and for both."""
    return Table(
        title="Points of least loss",
        columns=("least for", "reading", "edge weight", "vertex spread", *_losses(), "at the grid's edge"),
        rows=tuple(
            (whose, *_cells(one), one.at_edge)
            for of in _readings(points).values()
            for which, whose in enumerate(WHOSE)
            for one in [least(of, which)]
        ),
        notes=(
            f"Points of all {len(points)} at which both tables have a loss of at most {GOOD:g}: "
            f"{sum(max(one.losses[:2]) <= GOOD for one in points)}",
        ),
    )


def _losses() -> tuple[str, ...]:
    return tuple(f"loss, {whose}" for whose in WHOSE)


def _finalists(again: list[Point], final: int) -> Table:
    """Make the table of the points that were run again."""
    return Table(
        title=f"The best of them again, {final} trials a row, all rows of up to {LARGEST} vertices",
        columns=("reading", "edge weight", "vertex spread", *_losses()),
        rows=tuple(_cells(one) for one in sorted(again, key=lambda one: one.losses[2])),
    )


def _rows(again: list[Point]) -> Table:
    """Compare the rows of the best point with the paper's."""
    best = least(again, 2)
    columns = ("improvement", "compute_bound", "unchanged", "of_loose_bound")
    rows: list[tuple[Cell, ...]] = []
    for number in (1, 2):
        for row in table(number):
            name = f"{number}.{row['row']}"
            if name in best.rows:
                ours = best.rows[name]._asdict()
                rows.append((name, *(cell for of in columns for cell in (row.get(of), ours[of]))))
    heads = [f"{of.replace('_', ' ')}, {whose}" for of in columns for whose in ("paper", "ours")]
    return Table(
        title=f"Rows of the point of least loss of both: {_name(best)}, edge weight {best.edge_weight:g}, "
        f"vertex spread {best.vertex_spread:g}",
        columns=("table.row", *heads),
        rows=tuple(rows),
    )


def _plane(name: str, points: list[Point]) -> Table:
    """Make the table of a reading's losses."""
    weights = list(dict.fromkeys(one.edge_weight for one in points))
    spreads = list(dict.fromkeys(one.vertex_spread for one in points))
    at = {(one.vertex_spread, one.edge_weight): one.losses for one in points}
    return Table(
        title=f"Loss of Table 1 / of Table 2: {name}",
        columns=("vertex spread", *(f"edge weight {weight:g}" for weight in weights)),
        rows=tuple(
            (spread, *("{:.3g} / {:.3g}".format(*at[spread, weight]) for weight in weights))
            for spread in spreads
        ),
    )


def _panel(name: str, points: list[Point], which: int) -> Panel:
    """Draw the loss over the edges' weight, a line for each spread."""
    spreads = dict.fromkeys(one.vertex_spread for one in points)
    return Panel(
        title=f"{WHOSE[which]}: {name}",
        x="mean weight of an edge over a vertex's",
        y="loss",
        curves=tuple(
            Curve(
                label=f"vertex spread {spread:g}",
                x=tuple(one.edge_weight for one in points if one.vertex_spread == spread),
                y=tuple(one.losses[which] for one in points if one.vertex_spread == spread),
            )
            for spread in spreads
        ),
        log=True,
    )
