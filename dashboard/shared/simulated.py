"""Data of the tab Simulations: all runs with their placements, and some runs in full.

Tables of simulated runs: a list, runs side by side, traffic over time, latencies. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.shared.caching import KEYS, SHARED, cached_jobs_of_user, cached_snapshot
from dashboard.shared.names import METRICS
from dashboard.shared.placements import evaluated, history
from dashboard.shared.traffic import in_utc
from dashboard.shared.viewer import Viewer
from registry import units
from registry.model import Longs, Simulation
from registry.model.placement import PlacementSeries
from registry.model.simulation import PERCENTILES
from registry.registry import Registry
from registry.store.simulations import SimulationInfo, StoredSimulation, open_simulations

UNITS = {
    "completion": units.SECONDS,
    "throughput": units.RATE,
    "median latency": units.SECONDS,
    "99 % latency": units.SECONDS,
    "Worst link": units.SECONDS,
    "Hop-bytes": units.BYTES,
}
"""Base units of columns of `runs_table`."""
_STATIC = ("congestion_seconds", "hop_bytes", "average_dilation")
"""Costs of the placement that the list shows for each run."""
POINTS = 500
"""Maximum number of points of a run in a chart."""
_OF_MESSAGES = ("scale", "first", "rounds")
"""Parameters of a run about its messages; the other parameters are about the network."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedRuns:
    """Simulated runs and their placements."""

    runs: tuple[SimulationInfo, ...]
    """Runs, newest first."""
    series: PlacementSeries
    """Evaluated placements, oldest first."""
    row_of: Mapping[str, int]
    """Row of the series for the id of each placement."""

    def text(self, run: SimulationInfo, column: str) -> str:
        """Return a column of the series for the placement of a run; empty if it was not evaluated."""
        row = self.row_of.get(run.placement)
        return "" if row is None else str(getattr(self.series, column)[row])

    def number(self, run: SimulationInfo, column: str) -> float:
        """Return a column of numbers for the placement of a run; NaN if it was not evaluated."""
        row = self.row_of.get(run.placement)
        return math.nan if row is None else float(getattr(self.series, column)[row])


def runs_table(view: SimulatedRuns, runs: Sequence[SimulationInfo]) -> pd.DataFrame:
    """Return runs with the costs of their placements, in base units."""
    return pd.DataFrame(
        {
            "run": [run.id for run in runs],
            "saved at (UTC)": in_utc(run.recorded_at for run in runs),
            "application": [view.text(run, "application") for run in runs],
            "cluster": [run.cluster for run in runs],
            "placement": [run.placement for run in runs],
            "strategy": [view.text(run, "strategy") for run in runs],
            "sent": [sent_text(run) for run in runs],
            "mode": [run.mode for run in runs],
            "routing": [run.routing for run in runs],
            "completion": [run.completion_seconds for run in runs],
            "throughput": [run.throughput or math.nan for run in runs],
            "median latency": [run.median_latency_seconds for run in runs],
            "99 % latency": [run.latency_99_seconds for run in runs],
            **{METRICS[name].title: [view.number(run, name) for run in runs] for name in _STATIC},
            "complete": [run.complete for run in runs],
        }
    )


def sent_text(run: SimulationInfo) -> str:
    """Return as text what was sent: a trace and its speed, or rounds of the profile."""
    if run.trace is None:
        rounds = run.parameters.get("rounds", 1)
        return f"{rounds} round" if rounds == 1 else f"{rounds} rounds"
    scale, first = run.parameters.get("scale", 1.0), run.parameters.get("first")
    if scale == "inf":
        speed = "all at once"
    else:
        speed = "as recorded" if float(scale) == 1.0 else f"{units.figures(float(scale))} times as fast"
    return f"trace {run.trace}, {speed}" + ("" if first is None else f", first {first} messages")


def option_text(view: SimulatedRuns, run: SimulationInfo) -> str:
    """Return the text of a run in a list to choose from."""
    took = units.short(run.completion_seconds, units.SECONDS)
    time = units.moment_text(run.recorded_at)
    parts = (view.text(run, "application"), view.text(run, "strategy"), took, run.placement, time, run.id)
    return " · ".join(part for part in parts if part)


def letter(number: int) -> str:
    """Return the letter of a run by its number: A for 0."""
    return chr(ord("A") + number)


def label(view: SimulatedRuns, run: SimulationInfo, number: int) -> str:
    """Return the label of a run in charts, by its number: ``A · greedy · p3f2...``."""
    parts = (letter(number), view.text(run, "strategy"), run.placement)
    return " · ".join(part for part in parts if part)


def replay(run: SimulationInfo) -> tuple[object, ...]:
    """Return a key that is equal for runs of the same messages over the same network, for any placement."""
    parameters = tuple(sorted((name, str(value)) for name, value in run.parameters.items()))
    return (run.cluster, run.snapshot, run.profile, run.trace, run.mode, run.routing, run.seed, parameters)


def newest_alike(runs: Sequence[SimulationInfo], most: int) -> list[SimulationInfo]:
    """Return the newest run and earlier runs of the same replay for other placements, oldest first.

    Args:
        runs: Runs, newest first; at least one.
    """
    found: dict[str, SimulationInfo] = {}
    for run in runs:
        if replay(run) == replay(runs[0]):
            found.setdefault(run.placement, run)
    return list(found.values())[:most][::-1]


def facts_table(view: SimulatedRuns, chosen: Sequence[StoredSimulation]) -> pd.DataFrame:
    """Return runs side by side: their results, the costs of their placements, and their provenance."""
    by_id = {run.id: run for run in view.runs}
    base = chosen[0].simulation.throughput
    columns = [
        {**_results(one.simulation, base), **_static(view, by_id[one.id]), **_provenance(view, by_id[one.id])}
        for one in chosen
    ]
    letters = [letter(number) for number in range(len(columns))]
    rows = [
        {
            "fact": fact,
            **{which: column[fact] for which, column in zip(letters, columns, strict=True)},
            "differs": "≠" if len({column[fact] for column in columns}) > 1 else "",
        }
        for fact in columns[0]
    ]
    return pd.DataFrame(rows, columns=["fact", *letters, "differs"])


def _results(run: Simulation, base: float) -> dict[str, str]:
    """Return the results of a run as text; `base` is the throughput of run A."""
    busy = float(run.link_utilisation.max(initial=0.0))
    return {
        "completion": units.short(run.completion_seconds, units.SECONDS),
        "delivered": units.short(run.delivered_bytes, units.BYTES),
        "throughput": units.short(run.throughput, units.RATE) if run.throughput else "–",
        "throughput over that of A": f"{run.throughput / base:.3f}" if base > 0.0 else "",
        "mean latency": units.short(run.mean_latency_seconds, units.SECONDS),
        **{
            f"{percentile:g} % latency": units.short(run.latency(percentile), units.SECONDS)
            for percentile in (50.0, 95.0, 99.0, 100.0)
        },
        "busiest link": f"{100 * busy:.1f} % of the run",
        "interrupted": "" if run.complete else "yes",
    }


def _static(view: SimulatedRuns, run: SimulationInfo) -> dict[str, str]:
    """Return the costs that were saved with the placement."""
    return {
        f"{about.title}, estimated": _cost(view.number(run, metric), about.base)
        for metric, about in METRICS.items()
    }


def _provenance(view: SimulatedRuns, run: SimulationInfo) -> dict[str, str]:
    """Return the placement, messages and network of a run as text."""
    network = {name: value for name, value in run.parameters.items() if name not in _OF_MESSAGES}
    return {
        "placement": run.placement,
        "strategy": view.text(run, "strategy"),
        "application": view.text(run, "application"),
        "job": view.text(run, "job"),
        "sent": sent_text(run),
        "messages": f"{run.messages:,}",
        "mode": run.mode,
        "routing": run.routing,
        "seed": str(run.seed),
        "network": ", ".join(f"{name} {value}" for name, value in sorted(network.items())),
        "cluster": run.cluster,
        "snapshot": run.snapshot,
        "run": run.id,
        "saved at": units.moment_text(run.recorded_at),
        "code version": run.code_version,
    }


def over_time(runs: Mapping[str, Simulation]) -> pd.DataFrame:
    """Return the traffic over time of each run by its label; evenly thinned out if there are too many points.

    Delivered bytes until each time (s), and the mean latency since the previous point (s, first NaN).
    """
    parts = []
    for name, run in runs.items():
        points = {
            "run": name,
            "at": np.r_[0.0, run.delivered_at],
            "delivered": np.r_[0.0, run.delivered],
            "latency": np.r_[np.nan, run.latency_over_time],
        }
        parts.append(pd.DataFrame(points).iloc[_spread(len(run.delivered_at) + 1)])
    return pd.concat(parts, ignore_index=True)


def latencies(runs: Mapping[str, Simulation]) -> pd.DataFrame:
    """Return columns ``run``, ``percentile`` (text, ascending in each run) and ``latency`` (s)."""
    rows = [
        (name, f"{percentile:g}", run.latency(percentile))
        for name, run in runs.items()
        for percentile in PERCENTILES
    ]
    return pd.DataFrame(rows, columns=["run", "percentile", "latency"])


def predicted(view: SimulatedRuns, runs: Sequence[SimulationInfo], metric: str) -> pd.DataFrame:
    """Return the complete runs with this static cost of their placement, and their completion time (s)."""
    static = {run.id: view.number(run, metric) for run in runs}
    rows = [
        (run.id, run.placement, view.text(run, "strategy"), static[run.id], run.completion_seconds)
        for run in runs
        if run.complete and math.isfinite(static[run.id])
    ]
    return pd.DataFrame(rows, columns=["run", "placement", "strategy", "static", "completion"])


def _spread(count: int) -> Longs:
    """Return evenly spread rows of a series, including the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, POINTS)).round()).astype(np.int64)


def _cost(value: float, base: str) -> str:
    return units.short(value, base) if math.isfinite(value) else ""


LISTS = 2
"""Number of cached histories of placements."""
WHOLE = 8
"""Number of cached sets of runs with all their arrays."""


def simulated(registry: Registry, viewer: Viewer, placement: str | None = None) -> SimulatedRuns:
    """Return all visible runs: two statements, none if nothing is new; one more if limited to a user.

    Args:
        placement: Requested placement, which may be newer than every simulated one.
    """
    runs = _runs(registry)
    if runs:
        mine = None if viewer.only is None else cached_jobs_of_user(registry, viewer.only)
        wanted = frozenset({*(run.placement for run in runs), *([placement] if placement else [])})
        series = _series(registry, wanted, mine)
    else:
        series = history(registry, viewer).series
    row_of = {identity: row for row, identity in enumerate(series.id)}
    if viewer.only is not None:
        runs = tuple(run for run in runs if run.placement in row_of)
    return SimulatedRuns(runs=runs, series=series, row_of=row_of)


@st.cache_resource(ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def _runs(registry: Registry) -> tuple[SimulationInfo, ...]:
    """Return all runs without their arrays: one statement for all viewers in `SHARED`."""
    return registry.simulations.list()


@st.cache_resource(max_entries=WHOLE, show_spinner=False, hash_funcs=KEYS)
def whole_runs(registry: Registry, runs: tuple[str, ...]) -> tuple[StoredSimulation, ...]:
    """Return runs with all their arrays, and cache their fabrics: one statement, none if they are cached."""
    found = open_simulations(registry.database, runs)
    for one in found.values():
        cached_snapshot(registry, one.snapshot.id, one.snapshot)
    return tuple(found[run].stored for run in runs)


@st.cache_resource(max_entries=LISTS, show_spinner=False, hash_funcs=KEYS)
def _series(registry: Registry, wanted: frozenset[str], mine: frozenset[str] | None) -> PlacementSeries:
    """Return the evaluated placements, among them `wanted`; a placement never changes."""
    return evaluated(registry.placements.series(), mine)
