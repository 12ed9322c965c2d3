"""Compare our search with the paper's loop at equal processor time, on the machines of Tables 1 and 2.

On each application our search runs first, with its default number of trials. Then the loop is restarted with
other seeds until it has used the time that ours used, and its best result is taken: once with the lowest
expansion first, as printed, and once with the highest first, which is what the text means. The reading with
the higher throughput on a row is the stronger one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np

from bench.papers.circuits.experiment import (
    Effort,
    Parameters,
    Setting,
    WorkerPool,
    draw,
    geometric_mean,
    half_width,
    machine_of,
    run_loop,
    table,
)
from bench.support.papers import Cell, Figure, Table
from mapping.circuits.bounds import throughput_bound
from mapping.circuits.local_search import BEST_SEEDS, ROUNDING, TRIALS, TrialOptions, search_from_seeds
from mapping.circuits.paper_partition import HIGHEST
from mapping.circuits.problem import Application

CALIBRATED, DEFAULTS = "calibrated on Table 1", "not calibrated"
LOWEST_FIRST, HIGHEST_FIRST = "lowest first", "highest first"
ALL_STEPS = "highest first, all steps"
"""Only if the loop's refinements are limited: ours are not, so that the limit would be our gain."""
LIMITED = tuple(f"2.{row}" for row in range(8, 13))
"""Rows that links limit: on most others every search reaches a bound."""
SHARES = {(DEFAULTS, True): 1, (DEFAULTS, False): 3, (CALIBRATED, True): 3, (CALIBRATED, False): 6}
"""Divisors of the number of trials, by parameters and by whether links limit a row: calibrated trials take
three times as long."""
STRIDE = 1_000_003
"""Difference between the seeds of two restarts; larger than any number of a trial."""


class Restarted(NamedTuple):
    """Result of the paper's loop restarted for some time."""

    first: float
    first_seconds: float
    """`bench.papers.circuits.experiment.loop`"""
    best: float
    seconds: float
    runs: int


class EqualTime(NamedTuple):
    """Our search and the restarted loop on one application."""

    ours: float
    seconds: float
    loops: dict[str, Restarted]
    ours_at_first: dict[str, float]
    """first throughput, if it had none by then"""


def run(parameters: Parameters, effort: Effort, pool: WorkerPool) -> Iterator[Figure]:
    """Run all rows with calibrated and with default parameters; yield the part after each trial."""
    given = {CALIBRATED: parameters, DEFAULTS: Parameters()}
    rows = [(number, row) for number in (1, 2) for row in table(number)[: 1 if effort.small else None]]
    found: dict[tuple[str, str], list[EqualTime]] = {}
    for trial in range(effort.pairs):
        for name, one in given.items():
            for number, row in rows:
                name_of_row = f"{number}.{row['row']}"
                if trial < max(effort.pairs // SHARES[name, name_of_row in LIMITED], 1):
                    setting = Setting(machine=machine_of(row), vertices=row["vertices"], parameters=one)
                    key = name, name_of_row
                    found.setdefault(key, []).extend(pool.run(compare, setting, (trial,)))
        yield _part(found, given)


def compare(setting: Setting, number: int) -> EqualTime:
    """Run our search, then each reading of the loop until it has used the same processor time."""
    application = draw(setting, number)
    curve: list[tuple[float, float]] = []

    def record(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        curve.append((time.process_time() - begin, best or 0.0))

    begin = time.process_time()
    ours = search_from_seeds(
        application, setting.machine, TrialOptions(trials=TRIALS, seed=number), progress=record
    )
    seconds = time.process_time() - begin
    loops = {
        reading: restarted(chosen, application, number, seconds)
        for reading, chosen in readings(setting).items()
    }
    early = {reading: value_at(curve, one.first_seconds) for reading, one in loops.items()}
    return EqualTime(ours.throughput, seconds, loops, early)


def readings(setting: Setting) -> dict[str, Setting]:
    """Return the setting of each reading of the loop."""
    highest = replace(setting, expansion=HIGHEST)
    found = {LOWEST_FIRST: setting, HIGHEST_FIRST: highest}
    if setting.parameters.steps is not None:
        found[ALL_STEPS] = replace(highest, parameters=replace(setting.parameters, steps=None))
    return found


def restarted(setting: Setting, application: Application, number: int, seconds: float) -> Restarted:
    """Run the loop with other seeds until this processor time is used or a certified bound is reached.

    The last run is finished, so that the loop never has less time, unless nothing better exists.
    """
    most = throughput_bound(application, setting.machine, flows=0).throughput * (1 - ROUNDING)
    throughputs: list[float] = []
    first_seconds = used = 0.0
    begin = time.process_time()
    while not throughputs or (used < seconds and max(throughputs) < most):
        runs = len(throughputs)
        start = BEST_SEEDS[runs % len(BEST_SEEDS)]
        throughputs.append(run_loop(setting, application, number + runs * STRIDE, start).throughput)
        used = time.process_time() - begin
        first_seconds = first_seconds or used
    return Restarted(throughputs[0], first_seconds, max(throughputs), used, len(throughputs))


def value_at(curve: list[tuple[float, float]], seconds: float) -> float:
    """Return the best value at a time, or the first one if there was none by then."""
    return max([value for at, value in curve if at <= seconds] or [curve[0][1]])


def _part(found: dict[tuple[str, str], list[EqualTime]], given: dict[str, Parameters]) -> Figure:
    rows = {name: {row: of for (one, row), of in found.items() if one == name} for name in given}
    return Figure(
        title="Our search and the paper's loop at equal processor time",
        setting="All rows of Tables 1 and 2, processor time of one process. Ours with its default of "
        f"{TRIALS} trials and all steps of a refinement; then the loop on the same application, restarted "
        "with other seeds from the condensed graph and the torus in turns until it has used as much time, "
        "the last run finished, or has reached a certified bound. The best of its runs counts.",
        tables=tuple(_table(name, rows[name]) for name in given),
        data={
            "sets": {
                name: {
                    "parameters": asdict(given[name]),
                    "rows": {
                        row: {**summary(of), "trials": [_fields(one) for one in of]}
                        for row, of in rows[name].items()
                    },
                }
                for name in given
            }
        },
    )


def _fields(one: EqualTime) -> dict[str, Any]:
    return {**one._asdict(), "loops": {name: loop._asdict() for name, loop in one.loops.items()}}


def summary(of: list[EqualTime]) -> dict[str, Any]:
    """Return the ratios of a row: geometric means over its applications.

    ``equal`` is ours over the restarted loop by reading, ``single`` ours over one run of it at the time of
    that run, ``stronger`` the reading with the higher throughput, ``least`` the smallest ratio to that,
    ``factor`` the factor by which the 95% interval of its mean reaches up and down, None for one trial.
    """
    names = list(of[0].loops)
    equal = {name: [one.ours / one.loops[name].best for one in of] for name in names}
    single = {name: [one.ours_at_first[name] / one.loops[name].first for one in of] for name in names}
    mean = {name: geometric_mean(values) for name, values in equal.items()}
    stronger = min(names, key=lambda name: mean[name])
    wide = float(np.exp(half_width(np.log(equal[stronger])))) if len(of) > 1 else None
    return {
        "equal": mean,
        "single": {name: geometric_mean(values) for name, values in single.items()},
        "stronger": stronger,
        "least": min(equal[stronger]),
        "factor": wide,
        "better": sum(value > 1 + ROUNDING for value in equal[stronger]),
        "worse": sum(value < 1 - ROUNDING for value in equal[stronger]),
        "seconds": float(np.mean([one.seconds for one in of])),
        "loop_seconds": {name: float(np.mean([one.loops[name].seconds for one in of])) for name in names},
        "first_seconds": {
            name: float(np.mean([one.loops[name].first_seconds for one in of])) for name in names
        },
        "runs": {name: float(np.mean([one.loops[name].runs for one in of])) for name in names},
    }


def _table(name: str, rows: dict[str, list[EqualTime]]) -> Table:
    """Make the table of one set of parameters."""
    every = {row: summary(of) for row, of in rows.items()}
    names = list(next(iter(every.values()))["equal"])
    lines: list[tuple[Cell, ...]] = []
    for row, one in every.items():
        first, worst = names[0], one["stronger"]
        count = len(rows[row])
        cells: list[Cell] = [row, count, *(one["equal"][reading] for reading in names), worst, one["factor"]]
        cells += [one["least"], one["better"], one["worse"], one["seconds"], one["loop_seconds"][worst]]
        cells += [one["runs"][worst], one["single"][first], one["first_seconds"][first]]
        lines.append(tuple(cells))
    columns = ("table.row", "trials", *(f"ours / loop, {reading}" for reading in names), "stronger reading")
    columns += ("factor of its 95% interval", "least ratio to it", "ours better", "ours worse")
    columns += ("seconds, ours", "seconds, stronger loop", "runs of it")
    columns += (f"at the time of one loop, {names[0]}", "that time (s)")
    return Table(
        title=f"Equal processor time, {name} (geometric means over the same trials)",
        columns=columns,
        rows=tuple(lines),
        notes=(
            "The last two columns: ours, ended when it had used the time of one run of the loop as printed, "
            "over that run",
        ),
    )
