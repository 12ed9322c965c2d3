"""``almanac history``: stored placements, their quality and regressions; simulations; circuit plans."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from almanac.commands.cluster import EXIT_PROBLEMS
from almanac.options import (
    DefaultGroup,
    Time,
    add_options,
    json_option,
    open_registry,
    require_names,
    top_option,
)
from almanac.output.circuits import circuit_plan_info_to_json
from almanac.output.placements import (
    measured_gain_to_json,
    regression_to_json,
    simulation_info_to_json,
    stored_placement_to_json,
)
from almanac.output.printing import attributes, label, print_json, print_table, say
from registry import units

if TYPE_CHECKING:
    from mapping.traffic.measured_gain import MeasuredGain
    from registry.model.placement import PlacementSeries
    from registry.registry import Registry
    from registry.store.circuit_plans import CircuitPlanInfo
    from registry.store.simulations import SimulationInfo

COLUMNS = (
    *("id", "recorded_at", "cluster", "profile", "job", "role", "strategy", "congestion_seconds"),
    *("hop_bytes", "average_dilation", "complete"),
)
"""Columns of the table of placements: attributes of `StoredPlacementInfo`."""
LEAST = ("complete", "role", "average dilation", "strategy", "cluster", "recorded at", "hop-bytes")
"""Headings of the columns that narrow terminals leave out first."""
_SERIES_NAMES = {"profile": "profile_name"}
"""Columns that have another name in a `PlacementSeries`."""
REGRESSION_COLUMNS = (
    *(
        "placement",
        "recorded_at",
        "cluster",
        "profile",
        "role",
        "job",
        "ratio",
        "centre",
        "limit",
        "last_good",
    ),
    "changed",
)
SIMULATION_COLUMNS = (
    *("id", "recorded at", "cluster", "placement", "mode", "routing", "completion", "throughput"),
    *("99% latency", "complete"),
)
CIRCUIT_PLAN_COLUMNS = (
    *("id", "recorded at", "cluster", "profiles", "throughput", "present", "upper bound"),
    *("gain", "to move", "pays after (s)", "applied at", "complete"),
)


MEASURED_COLUMNS = (
    *("placement", "last run", "cluster", "application", "ranks", "runs placed / in order", "compared"),
    *("placed", "in order", "other load placed / in order", "estimated gain", "measured gain", "verdict"),
)


class HistoryFilter(NamedTuple):
    """Rows of a history to show, and how."""

    cluster: str | None
    application: str | None
    job: str | None
    """Only rows of this cluster, application or job."""
    top: int | None
    """Number of newest rows."""
    as_json: bool
    """True for a JSON document instead of a table."""

    @property
    def cluster_limit(self) -> int | None:
        """Number of newest rows of the cluster to read, or None if other filters need all of them."""
        return self.top if self.application is None and self.job is None else None


def _filters(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select rows; the command gets the registry and a `HistoryFilter`."""

    @wraps(function)
    def command(
        cluster: str | None,
        application: str | None,
        job: str | None,
        top: int | None,
        as_json: bool,
        **others: Any,
    ) -> None:
        with open_registry() as registry:
            require_names(registry, cluster, application, job)
            selected = HistoryFilter(cluster, application, job, top, as_json)
            function(registry, selected, **others)

    options = (
        click.option("--cluster", help="Only results on this cluster."),
        click.option("--application", help="Only results of this application."),
        click.option("--job", help="Only results of this job."),
        top_option(help="Only this many, the newest."),
        json_option,
    )
    return cast(Callable[..., None], add_options(command, options))


@click.group("history", cls=DefaultGroup, default="placements")
def command() -> None:
    """List stored placements (the default), regressions, measured gains, simulated runs or circuit plans."""


@command.command("placements")
@_filters
def placements(registry: Registry, selected: HistoryFilter) -> None:
    """List stored placements with their bounds and baselines, newest first."""
    _show_placements(registry, selected)


@command.command("regressions")
@click.option("--since", type=Time(), help="Only those recorded at this time or later.")
@_filters
def regressions(registry: Registry, selected: HistoryFilter, since: datetime | None) -> None:
    """List placements that got worse, newest first; exit with 4 if there are any.

    The ratio of the worst link to its certified bound is compared with the up to 20 earlier placements (at
    least 5) of the same application and profile. A regression is above their median plus three scaled median
    absolute deviations, and 5% above the median. The table names what changed since the last good placement.
    """
    if _show_regressions(registry, selected, since):
        click.get_current_context().exit(EXIT_PROBLEMS)


@command.command("measured")
@_filters
def measured(registry: Registry, selected: HistoryFilter) -> None:
    """List what placements gained in the runs of `almanac run`, beside the estimate, newest first.

    Compared are runs of one program with the same arguments, ranks and hosts: with a placement, and in order.
    The estimated gain is that of the worst link, which bounds what communication alone can gain.
    """
    _show_measured(registry, selected)


@command.command("simulations")
@click.option("--placement", metavar="ID", help="Only runs of this placement.")
@_filters
def simulations(registry: Registry, selected: HistoryFilter, placement: str | None) -> None:
    """List the saved runs of `almanac simulate`, newest first."""
    _show_simulations(registry, selected, placement)


@command.command("circuits")
@_filters
def circuits(registry: Registry, selected: HistoryFilter) -> None:
    """List the circuit plans of `almanac reconfigure`, newest first."""
    _show_circuit_plans(registry, selected)


def _show_placements(registry: Registry, selected: HistoryFilter) -> None:
    """Print placements; without --top or --job from columns, which are faster to read than rows."""
    cluster, application, job, top, as_json = selected
    if not as_json and job is None and top is None:
        series = registry.placements.series(cluster=cluster, application=application)
        _print_placements(series_rows(series))
        return
    infos = registry.placements.history(cluster=cluster, application=application, job=job, limit=top)
    if as_json:
        print_json([stored_placement_to_json(info) for info in infos])
    else:
        _print_placements([list(attributes(info, *COLUMNS).values()) for info in infos])


def _print_placements(rows: list[list[Any]]) -> None:
    """Print a table of `COLUMNS`, with units."""
    load, distance = COLUMNS.index("congestion_seconds"), COLUMNS.index("hop_bytes")
    for row in rows:
        if row[load] is not None:
            row[load], row[distance] = units.text(row[load], units.SECONDS), f"{row[distance]:.4e}"
    print_table("", [label(column) for column in COLUMNS], rows, least=LEAST)


def series_rows(series: PlacementSeries) -> list[list[Any]]:
    """Return a row of `COLUMNS` for each placement, newest first, those of equal time by id."""
    import numpy as np

    newest = np.argsort(-series.recorded_at.astype(np.int64), kind="stable").tolist()
    columns = [getattr(series, _SERIES_NAMES.get(name, name)) for name in COLUMNS]
    values = [column if isinstance(column, tuple) else column.tolist() for column in columns]
    return [[_cell(column[row]) for column in values] for row in newest]


def _cell(value: Any) -> Any:
    """Return the value to show: None for empty texts and missing numbers, times in UTC."""
    if hasattr(value, "tzinfo"):
        return value.replace(tzinfo=UTC)
    if value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    return value


def _show_regressions(registry: Registry, selected: HistoryFilter, since: datetime | None) -> bool:
    """Print the regressions, and return True if there are any."""
    from mapping.traffic import job_loads
    from registry.model import as_utc

    series = registry.placements.series(cluster=selected.cluster, application=selected.application)
    found = [
        one
        for one in job_loads.regressions(series)
        if selected.job in (None, one.job) and (since is None or one.recorded_at >= as_utc(since))
    ][: selected.top]
    rows = [regression_to_json(one) for one in found]
    if selected.as_json:
        print_json(rows)
    elif rows:
        texts = [{**row, "changed": ", ".join(row["changed"]) or "-"} for row in rows]
        print_table(
            "",
            [label(column) for column in REGRESSION_COLUMNS],
            [[row[column] for column in REGRESSION_COLUMNS] for row in texts],
            least=("role", "cluster", "median before", "limit", "recorded at", "job"),
        )
    else:
        say("no regressions")
    return bool(found)


def _show_measured(registry: Registry, selected: HistoryFilter) -> None:
    """Print the measured gain of each placement for each program that ran with it."""
    from mapping.traffic.measured_gain import measured_gains

    runs = registry.measured_runs.list(selected.cluster, selected.application)
    gains = [one for one in measured_gains(runs) if selected.job in (None, one.run.job)][: selected.top]
    if selected.as_json:
        print_json([measured_gain_to_json(one) for one in gains])
    else:
        least = ("cluster", "last run", "compared", "ranks")
        print_table("", MEASURED_COLUMNS, [_measured_row(one) for one in gains], least=least)


def _measured_row(one: MeasuredGain) -> list[Any]:
    """Return a row of `MEASURED_COLUMNS`."""
    times = [units.text(median(kind), units.SECONDS) if kind else None for kind in (one.placed, one.in_order)]
    gains = [None if gain is None else f"{gain:.3f}" for gain in (one.estimated, one.gain)]
    loads = [
        "-" if load is None else f"{load:.0%}" for load in (one.placed_other_load, one.in_order_other_load)
    ]
    return [
        *(one.run.placement, one.run.started_at, one.run.cluster, one.run.application, one.run.ranks),
        *(f"{len(one.placed)} / {len(one.in_order)}", "step" if one.per_step else "run", *times),
        *(None if loads == ["-", "-"] else " / ".join(loads), *gains),
        "worse" if one.worse else None,
    ]


def _show_simulations(registry: Registry, selected: HistoryFilter, placement: str | None) -> None:
    """Print simulated runs, of one placement if its id or the beginning of its id is given."""
    infos = _simulations(registry, selected, placement)[: selected.top]
    if selected.as_json:
        print_json([simulation_info_to_json(info) for info in infos])
    else:
        least = ("complete", "mode", "routing", "cluster", "recorded at")
        print_table("", SIMULATION_COLUMNS, [_simulation_row(info) for info in infos], least=least)


def _simulations(
    registry: Registry, selected: HistoryFilter, placement: str | None
) -> tuple[SimulationInfo, ...]:
    """Return the simulated runs that match the filter."""
    cluster, application, job = selected.cluster, selected.application, selected.job
    identity = None if placement is None else registry.placements.read(placement).id
    infos = registry.simulations.list(cluster, placement=identity, limit=selected.cluster_limit)
    if application is None and job is None:
        return infos
    placed = registry.placements.history(cluster=cluster, application=application, job=job)
    ids = {info.id for info in placed}
    return tuple(info for info in infos if info.placement in ids)


def _simulation_row(info: SimulationInfo) -> list[Any]:
    return [
        *attributes(info, "id", "recorded_at", "cluster", "placement", "mode", "routing").values(),
        units.text(info.completion_seconds, units.SECONDS),
        units.text(info.throughput, units.RATE),
        units.text(info.latency_99_seconds, units.SECONDS),
        info.complete,
    ]


def _show_circuit_plans(registry: Registry, selected: HistoryFilter) -> None:
    """Print circuit plans."""
    infos = registry.circuit_plans.list(selected.cluster, limit=selected.cluster_limit)
    matching = [
        info
        for info in infos
        if (selected.application is None or selected.application in info.applications)
        and (selected.job is None or selected.job in info.jobs)
    ][: selected.top]
    if selected.as_json:
        print_json([circuit_plan_info_to_json(info) for info in matching])
    else:
        least = ("complete", "upper bound", "cluster", "recorded at", "applied at", "present", "profiles")
        print_table("", CIRCUIT_PLAN_COLUMNS, [_circuit_plan_row(info) for info in matching], least=least)


def _circuit_plan_row(info: CircuitPlanInfo) -> list[Any]:
    """Return a row of `CIRCUIT_PLAN_COLUMNS`."""
    jobs = f"{len(info.jobs)} jobs: " if info.jobs else ""
    moved = None if info.removed is None else f"{info.removed} removed, {info.inserted} added"
    return [
        *attributes(info, "id", "recorded_at", "cluster").values(),
        jobs + ", ".join(info.profile_names),
        *attributes(info, "throughput", "present_throughput", "upper_bound", "gain").values(),
        moved,
        *attributes(info, "break_even_seconds", "applied_at", "complete").values(),
    ]
