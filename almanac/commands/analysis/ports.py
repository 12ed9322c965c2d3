"""``almanac ports``: errors and utilisation of the ports of a cluster, and the jobs that use them."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING

import click

from almanac.options.common import Time, current_settings, json_option, open_registry, running_jobs_options
from almanac.output.json.ports import ports_to_json
from almanac.output.printing import note, print_json, print_table, progress_bars, say
from almanac.output.running_jobs import heading, note_omitted_jobs
from registry import units

if TYPE_CHECKING:
    from mapping.distances.cost_model import CostModel
    from mapping.questions.live import Live
    from mapping.traffic.ports import ErrorGrowth, PortTable, PortUse

TOP = 15
"""Default number of ports: one screen."""
MAX_NAMED_JOBS = 4
"""Maximum number of jobs that a row names."""


@click.command("ports")
@click.argument("cluster")
@click.option(
    "--since",
    type=Time(),
    help="Errors and utilisation since this time (default: errors of the last day, utilisation between the "
    "last two sweeps).",
)
@running_jobs_options
@click.option("--top", type=click.IntRange(min=1), default=TOP, show_default=True, help="Rows of the table.")
@json_option
def command(
    cluster: str, since: datetime | None, at: datetime | None, costs: CostModel, top: int, as_json: bool
) -> None:
    """Show the ports of CLUSTER with most errors, then the busiest ones, and the running jobs on them.

    Errors are the growth of the error counters, with the growth per hour. Estimated utilisation is the
    load of the running jobs (see `almanac congestion`), scaled so that it sums up to the measured one.
    """
    from mapping.questions.live import read_ports, traffic

    limits = current_settings().error_limits()
    with open_registry() as registry, progress_bars() as progress:
        live = traffic(registry, cluster, at, costs, progress)
        table = read_ports(registry, live, limits, since)
    if as_json:
        print_json(ports_to_json(live, table, top))
    else:
        _show(live, table, top)
        note_omitted_jobs(live)


def _show(live: Live, table: PortTable, top: int) -> None:
    """Print the periods of counters and jobs, and the table of ports."""
    say(heading(live))
    errors, rates = table.errors, table.rates
    if errors is None:
        cluster = live.running.snapshot.cluster
        note(f"{cluster} has no sweeps of port counters: ingest them regularly (docs/how-to/operations.md)")
    elif table.is_since_reset:
        many, last = int((errors.amount > 0).any(axis=1).sum()), units.moment_text(errors.grown.end)
        say(f"totals since each port's counters were reset; errors: {many:,} of {len(errors.grown):,} ports")
        note(f"there is one sweep of counters, of {last}: what is new, and limits, need a second one")
    else:
        many, over = int((errors.amount > 0).any(axis=1).sum()), int(errors.over.any(axis=1).sum())
        since = units.moment_text(errors.grown.start)
        say(f"new errors since {since}: {many:,} of {len(errors.grown):,} ports, {over:,} beyond the limits")
    if rates is not None:
        say(f"utilisation from {units.moment_text(rates.start)} to {units.moment_text(rates.end)}")
    measured = ["errors (per hour)", "sent (%)", "received (%)"]
    if table.is_since_reset:
        measured = ["errors", "sent", "received"]
    columns = ["port", "to", *measured, *_estimated(table), "jobs"]
    rows = [_row(port, table) for port in table.top(top)]
    if rows:
        print_table("", columns, rows)
    else:
        say("no errors and no traffic")


def _estimated(table: PortTable) -> list[str]:
    """Return the columns of the estimate: without measured traffic it has no scale, without jobs none."""
    if not len(table.shared):
        return []
    unit = "(s per iteration)" if math.isnan(table.estimate.iterations_per_second) else "(%)"
    return [f"estimated sent {unit}", f"estimated received {unit}"]


def _row(port: PortUse, table: PortTable) -> list[str]:
    """Return a row of the table."""
    least = ">= " if port.at_least else ""
    estimated = [_percent(port.estimated_sent_share), _percent(port.estimated_received_share)]
    if math.isnan(table.estimate.iterations_per_second):
        seconds = port.estimated_sent_seconds, port.estimated_received_seconds
        estimated = [_amount(value, units.SECONDS) for value in seconds]
    use = _percent(port.sent_share, least), _percent(port.received_share, least)
    if table.is_since_reset:
        use = _amount(port.sent_bytes, units.BYTES), _amount(port.received_bytes, units.BYTES)
    rest = len(port.jobs) - MAX_NAMED_JOBS
    return [
        port.name,
        port.to,
        ", ".join(_error_text(error, hourly=not table.is_since_reset) for error in port.errors),
        *use,
        *(estimated if len(table.shared) else []),
        ", ".join(port.jobs[:MAX_NAMED_JOBS]) + (f", {rest} more" if rest > 0 else ""),
    ]


def _error_text(error: ErrorGrowth, *, hourly: bool) -> str:
    from mapping.checks.finding import WORDS

    least = "at least " if error.at_least else ""
    rate = f"{error.per_hour:,.0f}" if error.per_hour >= 100 else f"{error.per_hour:.3g}"
    beside = [rate] * hourly + ["full"] * error.saturated
    return f"{least}{error.growth:,} {WORDS[error.counter]}" + (f" ({', '.join(beside)})" if beside else "")


def _percent(share: float, least: str = "") -> str:
    return "" if math.isnan(share) else f"{least}{100 * share:.1f}"


def _amount(value: float, unit: str) -> str:
    return "" if math.isnan(value) else units.text(value, unit)
