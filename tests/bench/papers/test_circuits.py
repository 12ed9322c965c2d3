"""The reproduction of the 2013 paper: its values, experiments, calibration, and the page."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from bench.papers.circuits import calibration, equal_time, optimum, plane, rings, tables
from bench.papers.circuits import experiment as trial
from bench.papers.circuits.__main__ import NAMES, run
from bench.papers.circuits.calibration import SCALES, loss, paper_row, row_of
from bench.papers.circuits.experiment import (
    FORKS,
    Effort,
    Outcome,
    Parameters,
    Setting,
    WorkerPool,
    calibrated,
    draw,
    experiment,
    forks,
    geometric_mean,
    half_width,
    imprecision,
    loop,
    machine_of,
    run_loop,
    table,
)
from bench.support.papers import Figure, cell, claims, load, page, save
from mapping.circuits.bounds import UpperBound, loose_bound, throughput_bound
from mapping.circuits.local_search import TrialOptions, search_from_seeds
from mapping.circuits.paper_seeds import seed_topology
from mapping.circuits.problem import Application, Machine
from mapping.cluster import Cluster

SMALL = Effort(seconds=0.0, calibration_seconds=0.0, fewest=2, batch=2, pairs=1, workers=1, small=True)
MACHINE = Machine(nodes=8, max_degree=3, max_edges=11, compute_speed=100.0, link_speed=10.0)
SETTING = Setting(machine=MACHINE, vertices=30, parameters=Parameters(patience=2))


def outcome(throughput: float = 1.0, improvement: float = 1.0, seconds: float = 1.0, **more: Any) -> Outcome:
    given: dict[str, Any] = {"best_iteration": 0, "solves": 3, "compute_bound": True, "of_loose_bound": 0.5}
    return Outcome(throughput=throughput, improvement=improvement, seconds=seconds, **given | more)


def test_the_tables_have_the_papers_rows() -> None:
    assert [len(table(number)) for number in (1, 2, 3)] == [3, 12, 7]
    assert [row["row"] for row in table(2)] == list(range(1, 13))
    assert [row["seed"] for row in table(3)] == list(FORKS[1:])
    assert len(optimum.machines(small=False)) == 9
    for row in (*table(1), *table(2)):
        machine = machine_of(row)
        assert (machine.nodes * machine.max_degree) // 2 == machine.max_edges  # all of the paper's are so


def test_imprecision_is_half_of_the_interval_over_the_mean() -> None:
    values = np.random.default_rng(0).normal(10.0, 2.0, 400)
    assert imprecision(values) == pytest.approx(1.966 * values.std(ddof=1) / 20 / values.mean(), rel=1e-3)
    assert half_width([3.0]) == math.inf
    assert imprecision([5.0, 5.0, 5.0]) == 0.0
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


def test_an_experiment_ends_when_it_is_known_well_enough_or_late() -> None:
    effort = Effort(seconds=60.0, fewest=4, batch=2, most=10)
    with WorkerPool(1) as pool:
        known = experiment(pool, lambda _, number: 1 + number % 2 / 100, SETTING, effort, lambda one: (one,))
        assert (len(known.found), known.complete) == (4, True)
        wild = experiment(pool, lambda _, number: 1.0 + number, SETTING, effort, lambda one: (1.0, one))
        assert (wild.found, wild.complete) == ([1.0 + number for number in range(10)], False)
        assert wild.imprecision == imprecision(wild.found)


class Backwards:
    """Runs tasks as a cluster does, and returns the result of the last one first."""

    def run(self, function: Callable[..., Any], tasks: list[Any], what: str) -> Iterator[tuple[int, Any]]:
        for number in reversed(range(len(tasks))):
            done: Future[Any] = Future()
            done.set_result(function(*tasks[number]))
            yield number, done


def test_trials_on_a_cluster_are_returned_by_number() -> None:
    with WorkerPool(1, cast(Cluster, Backwards())) as pool:
        found = pool.run(lambda setting, number: (setting, number), SETTING, range(2, 5))
    assert found == [(SETTING, number) for number in (2, 3, 4)]


def test_a_trial_is_the_loop_on_its_own_application() -> None:
    one, again, other = loop(SETTING, 3), loop(SETTING, 3), loop(SETTING, 4)
    assert one._replace(seconds=0.0) == again._replace(seconds=0.0)
    assert one.throughput != other.throughput
    assert one.of_loose_bound == one.throughput / loose_bound(draw(SETTING, 3), MACHINE) <= 1.0
    assert one.solves == one.best_iteration + 1 + 2
    assert one.improvement >= 1.0


def test_forks_share_an_application_and_begin_with_the_baseline() -> None:
    setting = Setting(
        machine=Machine(nodes=16, max_degree=4, max_edges=26, compute_speed=100.0, link_speed=200.0),
        vertices=60,
        parameters=Parameters(patience=1, steps=5),
    )
    found = forks(setting, 0)
    assert len(found) == len(FORKS)
    assert found[0]._replace(seconds=0.0) == loop(setting, 0)._replace(seconds=0.0)


def test_gains_of_seeds_are_against_the_condensed_graph() -> None:
    forked = (outcome(2.0, seconds=3.0), *[outcome(1.0, seconds=2.0)] * (len(FORKS) - 1))
    assert rings.deltas([forked], "throughput")[0, :2].tolist() == [0.0, -0.5]
    assert rings.deltas([forked], "seconds")[0, 1] == 0.5
    assert [FORKS[at] for at in rings.TWINS] == ["chordal-ring-3", "chordal-ring-5"]


def test_the_variation_follows_from_the_papers_number_of_trials() -> None:
    """252 trials to 5%: a standard deviation of 0.405 of the mean."""
    published = [paper_row(row) for row in table(1)]
    assert published[0].variation == pytest.approx(0.405, abs=1e-3)
    assert loss(published, published, SCALES) == 0.0
    off = [row._replace(improvement=row.improvement + 0.02) for row in published]
    assert loss(off, published, SCALES) == pytest.approx(1 / 5)
    second = [paper_row(row) for row in table(2)]  # without the ratio to the loose bound
    off = [row._replace(improvement=row.improvement + 0.02, of_loose_bound=0.3) for row in second]
    assert loss(off, second, SCALES) == pytest.approx(1 / 4)


def test_a_row_is_the_mean_of_its_trials() -> None:
    found = [outcome(1.0, 1.0), outcome(3.0, 1.5, compute_bound=False)]
    assert row_of(found)[:4] == (1.25, 0.5, 0.5, 0.5)
    assert row_of(found).variation == pytest.approx(math.sqrt(2) / 2)
    assert tables.summary(found)["trials"] == 2
    assert tables.summary(found)["unchanged"] == 0.5


def test_the_calibration_keeps_the_best_and_says_when_time_was_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "SMALL", ({"vertex_spread": (1.0, 2.2)},))
    monkeypatch.setattr(calibration, "loop", lambda setting, number: near(setting))
    with WorkerPool(1) as pool:
        chosen, part = calibration.run(Effort(calibration_seconds=60.0, workers=1, small=True), pool)
        assert chosen == Parameters(vertex_spread=1.0)
        assert part.data["chosen"]["vertex_spread"] == 1.0
        assert [one["vertex_spread"] for one in part.data["tried"]] == [2.2, 1.0]
        chosen, part = calibration.run(SMALL, pool)
        assert chosen == Parameters()
        assert not part.data["complete"]


def near(setting: Setting) -> Outcome:
    """Nearer to the paper with a spread of 1 than with another."""
    return outcome(improvement=1.05 if setting.parameters.vertex_spread == 1.0 else 2.0)


def test_the_loop_is_restarted_until_it_used_the_time_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, bound = itertools.count(), UpperBound(name="given", throughput=math.inf, proof="")
    monkeypatch.setattr(time, "process_time", lambda: float(next(clock)))
    monkeypatch.setattr(equal_time, "throughput_bound", lambda *_, **__: bound)
    application = draw(SETTING, 3)
    found = equal_time.restarted(SETTING, application, 3, 3.0)  # a run takes a second
    by_hand = [
        run_loop(SETTING, application, 3 + run * equal_time.STRIDE, start).throughput
        for run, start in enumerate(("condensed", "torus", "condensed"))
    ]
    assert found == (by_hand[0], 1.0, max(by_hand), 3.0, 3)
    assert found.first == loop(SETTING, 3).throughput
    assert equal_time.restarted(SETTING, application, 3, 0.0).runs == 1
    bound = replace(bound, throughput=1e-9)  # reached by the first run
    assert equal_time.restarted(SETTING, application, 3, 5.0).runs == 1


def test_a_limited_loop_is_also_compared_without_its_limit() -> None:
    assert list(equal_time.readings(SETTING)) == [equal_time.LOWEST_FIRST, equal_time.HIGHEST_FIRST]
    limited = Setting(machine=MACHINE, vertices=30, parameters=Parameters(steps=1))
    every = {
        name: (one.expansion, one.parameters.steps) for name, one in equal_time.readings(limited).items()
    }
    expected = {equal_time.LOWEST_FIRST: ("lowest", 1), equal_time.HIGHEST_FIRST: ("highest", 1)}
    assert every == expected | {equal_time.ALL_STEPS: ("highest", None)}


def test_ratios_are_against_the_stronger_reading() -> None:
    def one(ours: float, low: float, high: float) -> equal_time.EqualTime:
        loops = {
            name: equal_time.Restarted(first=best / 2, first_seconds=1.0, best=best, seconds=4.0, runs=3)
            for name, best in (("low", low), ("high", high))
        }
        return equal_time.EqualTime(ours, 4.0, loops, {"low": low, "high": high / 2})

    found = equal_time.summary([one(4.0, 1.0, 2.0), one(4.0, 4.0, 8.0)])
    assert found["equal"] == {"low": pytest.approx(2.0), "high": pytest.approx(1.0)}
    assert found["single"] == {"low": pytest.approx(2.0), "high": pytest.approx(1.0)}
    assert (found["stronger"], found["least"]) == ("high", 0.5)
    assert (found["better"], found["worse"]) == (1, 1)
    assert equal_time.value_at([(1.0, 5.0), (2.0, 7.0), (3.0, 6.0)], 2.5) == 7.0
    assert equal_time.value_at([(1.0, 5.0), (2.0, 7.0)], 0.5) == 5.0


def test_the_paper_itself_has_no_misfit_in_the_plane() -> None:
    published = {f"{number}.{row['row']}": paper_row(row) for number in (1, 2) for row in table(number)}
    assert plane.losses(published) == (0.0, 0.0, 0.0)
    off = {**published, "2.4": published["2.4"]._replace(compute_bound=published["2.4"].compute_bound - 0.2)}
    assert plane.losses({name: off[name] for name in ("1.1", "2.1", "2.4")}) == pytest.approx((0, 0.5, 0.25))


def test_the_best_points_of_the_plane_are_run_again() -> None:
    def point(steps: int | None, weight: float, losses: tuple[int, int]) -> plane.Point:
        return plane.Point("lowest", steps, weight, 1.8, {}, (*losses, sum(losses) / 2))

    given = [(1, 0.3, (1, 9)), (1, 3.0, (2, 2)), (None, 1.0, (8, 1)), (None, 3.0, (4, 4))]
    points = [point(*one) for one in given]
    assert plane.candidates(points) == [points[1], points[0], points[2]]
    assert plane.candidates(points[:1]) == points[:1]
    assert [one.at_edge for one in points] == [True, False, False, False]
    assert plane.least(points, 0) is points[0]


STEPS = {
    "tables-1-2": 2, "tables-1-2-defaults": None, "table-3": 2, "optimum": 2, "equal-time": 2, "plane": None
}  # fmt: skip


@pytest.mark.parametrize(("name", "steps"), STEPS.items())
def test_a_part_runs_small_and_becomes_a_section(
    name: str, steps: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def quick(application: Application, machine: Machine, _: object) -> Any:
        return search_from_seeds(application, machine, TrialOptions(trials=20))

    for module in (tables, equal_time, plane):
        monkeypatch.setattr(
            module, "table", lambda number: [{**row, "vertices": 20} for row in table(number)]
        )
    monkeypatch.setattr(rings, "cases", lambda small: [rings.Case(26, 200.0, 300, 100.0)])
    monkeypatch.setattr(optimum, "VERTICES", 5)
    monkeypatch.setattr(optimum, "search_from_seeds", quick)
    monkeypatch.setattr(trial, "TRIALS", 20)
    monkeypatch.setattr(equal_time, "TRIALS", 20)
    monkeypatch.setattr(trial, "throughput_bound", without_flows)
    with WorkerPool(1) as pool:
        *_, (parameters, part) = run(name, SMALL, pool, Parameters(patience=1, steps=2))
    path = save(name, part, SMALL, tmp_path, parameters=parameters)
    assert json.loads(path.read_text())["parameters"]["steps"] == steps
    text = page(load(tmp_path, NAMES), "# Head")
    assert part.title in text
    for one in part.tables:
        assert one.title in text
        assert all(len(row) == len(one.columns) for row in one.rows), one.title
    for key in part.claims:
        assert claims()[key].quote in text
    assert ("machines" in part.data) == (name == "optimum")
    for one in (one for machine in part.data.get("machines", ()) for one in machine["found"]):
        assert min(one["paper"], one["restarted"], one["ours"]) > 0
        assert max(one["paper"], one["restarted"], one["ours"]) <= 1 + 1e-9  # of the true optimum
        assert 1 <= one["bound"] * (1 + 1e-9) <= one["loose"] * (1 + 1e-9) ** 2


def without_flows(application: Application, machine: Machine, flows: int) -> UpperBound:
    """A bound that takes no time."""
    return throughput_bound(application, machine, flows=0)


def test_parameters_come_from_the_calibration_of_the_folder(tmp_path: Path) -> None:
    assert calibrated(tmp_path) is None
    chosen = Parameters(vertex_spread=1.2, steps=5)
    part = Figure(title="t", setting="s", data={"chosen": {"vertex_spread": 1.2, "steps": 5}})
    save("calibration", part, SMALL, tmp_path)
    assert calibrated(tmp_path) == chosen


def test_cells_are_short_and_unknown_values_empty() -> None:
    assert [cell(value) for value in (None, True, 0.123456, 12, "a")] == ["", "yes", "0.1235", "12", "a"]
    shown = {"title": "T", "columns": ("a", "b"), "rows": ((1, None),), "notes": ("n",)}
    record = {
        "title": "P", "setting": "S.", "date": "d", "machine": {"processor": "p"}, "effort": {"workers": 1},
        "parameters": {"skip": 0.3}, "panels": [], "claims": [], "name": "p",
        "tables": [shown],
    }  # fmt: skip
    assert "| a | b |\n|---|---|\n| 1 |  |\n\n- n" in page([record], "# Head")


def test_condensed_graphs_of_stream_graphs_leave_links_of_the_switch_unused() -> None:
    """Why rings with 28 links do better than the condensed graph: a swap keeps the number of links."""
    limits = Machine(nodes=16, max_degree=4, max_edges=28, compute_speed=100.0, link_speed=200.0)
    setting = Setting(machine=limits, vertices=300)

    def links(seed: str, trial: int) -> int:
        return seed_topology(seed, draw(setting, trial), limits, np.random.default_rng(trial)).links

    assert 22 < np.mean([links("condensed", trial) for trial in range(20)]) < 25
    assert links("chordal-ring-2", 0) == 28
