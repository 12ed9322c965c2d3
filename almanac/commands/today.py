"""``almanac today``: what changed, what is broken, which jobs are slowed, and what to do first.

``almanac congestion``: the busiest links of a cluster now, and the jobs that load them.

``almanac ports``: errors and utilisation of the ports of a cluster, and the jobs that use them.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from almanac.commands.cluster import EXIT_PROBLEMS, fail_on_option, is_reached
from almanac.options import (
    DAY,
    Time,
    current_settings,
    is_rare,
    json_option,
    open_registry,
    running_jobs_options,
    top_option,
)
from almanac.output.printing import kernel_progress_bars, note, print_json, print_table, progress_bars, say
from almanac.output.running_jobs import (
    CONVENTION,
    congestion_to_json,
    heading,
    link_name,
    note_omitted_jobs,
    ports_to_json,
    profile_names,
    rank_pairs_to_json,
    slowdowns_to_json,
    today_lines,
    today_to_json,
    users_text,
)
from registry import units

if TYPE_CHECKING:
    from mapping.distances.cost_model import CostModel
    from mapping.questions.live import Live
    from mapping.traffic.job_loads import RankPairs
    from mapping.traffic.ports import ErrorGrowth, PortTable, PortUse
    from mapping.traffic.shared_load import HotLink


@click.command("today")
@click.argument("cluster")
@click.option("--since", type=Time(), help="Compare with this time (default: 24 hours ago).")
@fail_on_option
@json_option
def command(cluster: str, since: datetime | None, fail_on: str, as_json: bool) -> None:
    """Show on one screen what changed in CLUSTER, what is broken, which jobs are slowed, and what to do.

    The screen has at most 40 lines of 80 columns. Jobs are slowed if others load their worst link; only jobs
    with a profile and a known placement are compared. Nothing is saved.
    """
    from mapping.questions.today import read_today

    start, limits = since or datetime.now(UTC) - DAY, current_settings().error_limits()
    with open_registry() as registry, kernel_progress_bars() as progress:
        today = read_today(registry, cluster, start, limits=limits, is_rare=is_rare, progress=progress)
    if as_json:
        print_json(today_to_json(today))
    else:
        for line in today_lines(today):
            click.echo(line)
    if is_reached(today.findings, fail_on):
        click.get_current_context().exit(EXIT_PROBLEMS)


TOP = 20
"""Default number of links, jobs and pairs of ranks in each table."""


@click.command("congestion")
@click.argument("cluster")
@running_jobs_options
@top_option(TOP)
@click.option("--network", is_flag=True, help="Only links between switches, not the cables of hosts.")
@click.option("--link", metavar="DEVICE:PORT", help="Only this link, with the pairs of ranks that load it.")
@json_option
def congestion(
    cluster: str,
    at: datetime | None,
    costs: CostModel,
    top: int,
    network: bool,
    link: str | None,
    as_json: bool,
) -> None:
    """Show the busiest links of CLUSTER and which of its running jobs load them; nothing is saved.

    Times of links assume that each job sends its profile once. Slowdowns scale each profile by the time of an
    iteration of its job: stated with `almanac job attach`, of a trace, or measured by counters.
    """
    from mapping.questions.live import link_of, pairs_on, traffic, with_counters

    with open_registry() as registry, kernel_progress_bars() as progress:
        live = with_counters(registry, traffic(registry, cluster, at, costs, progress))
        if link is None:
            links = live.shared.hottest(top, network_only=network)
        else:
            links = live.shared.links([link_of(registry, live, link)])
        users = links[0].users if link is not None else ()
        pairs = {user.job: pairs_on(registry, live, user.job, links[0].row, most=top) for user in users}
    if as_json:
        print_json(congestion_to_json(live, links, pairs if link is not None else None, top))
    else:
        _show(live, links, pairs, top)
        note_omitted_jobs(live)


def _show(live: Live, links: tuple[HotLink, ...], pairs: dict[str, RankPairs], top: int) -> None:
    """Print the table of links, and that of pairs of ranks or of jobs."""
    say(heading(live))
    if not len(live.shared):
        return
    say(CONVENTION)
    profiles = profile_names(live)
    rows = [
        [
            f"{link_name(live, link)} -> {link.load.target}",
            units.text(link.load.seconds, units.SECONDS),
            units.text(link.load.bytes, units.BYTES),
            units.text(link.load.capacity, units.RATE),
            users_text(link, profiles),
        ]
        for link in links
    ]
    columns = ["link", "busy", "load", "capacity", "jobs (part of the load)"]
    print_table("busiest links", columns, rows, least=("capacity", "load"))
    if pairs:
        _show_pairs(pairs, top)
    else:
        _show_jobs(live, top)


def _show_pairs(pairs: dict[str, RankPairs], top: int) -> None:
    shown = rank_pairs_to_json(pairs, top)
    rows = [
        [row["job"], row["sender"], row["receiver"], units.text(row["bytes"], units.BYTES)] for row in shown
    ]
    total = sum(found.pairs for found in pairs.values())
    title = f"pairs of ranks on this link: {len(shown)} of {total}"
    print_table(title, ["job", "sender", "receiver", "bytes"], rows)


def _show_jobs(live: Live, top: int) -> None:
    """Print how much sharing links slows each job; if times are unknown, its share of a link."""
    slowdowns = slowdowns_to_json(live)
    rows = [
        [
            row["job"],
            row["user"],
            row["profile"],
            _time_and_origin(row),
            row["link"] or "",
            units.text(row["alone_seconds"], units.SECONDS),
            f"{row['share']:.0%}",
            "unknown" if row["slowdown"] is None else f"{row['slowdown']:.2f}",
        ]
        for row in slowdowns[:top]
    ]
    columns = ["job", "user", "profile", "iteration", "worst link", "alone", "share of it", "slowdown"]
    print_table("jobs on shared links (estimated)", columns, rows, least=("profile", "user"))
    for row in slowdowns:
        if (row["iteration_seconds"] or math.inf) < row["alone_seconds"]:
            note(f"job {row['job']}: its worst link is busy longer than its time of an iteration: check it")
    if any(row["slowdown"] is None and row["iteration_seconds"] is None for row in slowdowns):
        note(
            "a slowdown needs the time of an iteration of all jobs on a link: state it with "
            "`almanac job attach JOB PROFILE --iteration-seconds SECONDS`"
        )


def _time_and_origin(row: dict[str, Any]) -> str:
    if row["iteration_seconds"] is None:
        return "unknown"
    return f"{units.text(row['iteration_seconds'], units.SECONDS)} ({row['iteration_from']})"


PORTS_TOP = 15
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
@click.option(
    "--top", type=click.IntRange(min=1), default=PORTS_TOP, show_default=True, help="Rows of the table."
)
@json_option
def ports(
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
        _show_ports(live, table, top)
        note_omitted_jobs(live)


def _show_ports(live: Live, table: PortTable, top: int) -> None:
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
