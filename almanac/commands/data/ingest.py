"""``almanac ingest``: load files of fabric tools, schedulers and MPI libraries."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from almanac.options.common import Moment, json_option, open_registry, read_hosts
from almanac.output.printing import note, print_json, progress_bars
from registry import units

if TYPE_CHECKING:
    from ingest.pipeline import Report


@click.command("ingest")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--cluster", help="Cluster that the files are of; needed for all but profiles.")
@click.option("--format", "format_name", help="Read as this format instead of recognising the content.")
@click.option("--observed-at", type=Moment(), help="Time of the observation (default: the scan's own line).")
@click.option("--name", help="Name of the profile (default: the file's).")
@click.option("--rate", help="Rate of links whose source prints none: 4xHDR, or bytes/s.")
@click.option("--hosts", help="Hosts of a rank order or task map that names none: n[01-04], or @FILE.")
@click.option("--slots", type=click.IntRange(min=1), default=1, help="Ranks that each of them takes.")
@click.option("--job", help="Job that ran as the placements tell.")
@click.option("--allow-missing-ranks", is_flag=True, help="Take a recording that lacks some ranks' files.")
@click.option("--transposed", is_flag=True, help="Matrices of bytes: row r is what rank r receives.")
@click.option(
    "--divide", type=click.IntRange(1), default=1, help="Divide a profile that was recorded N times over."
)
@click.option("--parts", type=click.IntRange(1), help="Matrices of solvers: cut into so many ranks by METIS.")
@click.option(
    "--collectives",
    type=click.Choice(["ring", "tree", "recursive-doubling", "direct", "hierarchical"]),
    default="ring",
    help="Traces of collectives: algorithm that they are expanded by.",
)
@click.option(
    "--domain", type=click.IntRange(1), help="Ranks of an NVLink domain, for --collectives hierarchical."
)
@click.option("--dry-run", is_flag=True, help="Read and check everything, save nothing.")
@json_option
def command(
    paths: tuple[str, ...],
    cluster: str | None,
    format_name: str | None,
    observed_at: datetime | None,
    name: str | None,
    rate: str | None,
    hosts: str | None,
    slots: int,
    job: str | None,
    allow_missing_ranks: bool,
    transposed: bool,
    divide: int,
    parts: int | None,
    collectives: str,
    domain: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Load files, folders or archives; the content tells the format.

    Files of one cluster given in one call are one observation. One transaction a call: an error in
    any file saves nothing.
    """
    from ingest.options import Options
    from ingest.pipeline import ingest

    options = Options(
        cluster=cluster,
        format=format_name,
        observed_at=observed_at,
        name=name,
        rate=None if rate is None else _rate(rate),
        hosts=() if hosts is None else read_hosts(hosts),
        slots=(slots,),
        job=job,
        allow_missing_ranks=allow_missing_ranks,
        transposed=transposed,
        divide=divide,
        parts=parts,
        collectives=collectives,
        domain=domain,
    )
    with _cluster_is_usage(), contextlib.ExitStack() as stack:
        registry = None if dry_run else stack.enter_context(open_registry())
        progress = stack.enter_context(progress_bars())
        report = ingest(registry, paths, options, dry_run=dry_run, progress=progress)
    told = _told(report, dry_run)
    if as_json:
        print_json(told)
        return
    for warning in told["warnings"]:
        note(f"warning: {warning}")
    _print(told)


@contextlib.contextmanager
def _cluster_is_usage() -> Iterator[None]:
    """A missing ``--cluster`` is a wrong call, not a wrong file."""
    from registry.errors import ConfigError

    try:
        yield
    except ConfigError as error:
        if error.key != "cluster":
            raise
        raise click.UsageError(f"--cluster: {error.reason}") from error


def _rate(text: str) -> float:
    """Bytes/s from ``4xHDR`` or a number."""
    import re

    from ingest.rates import link_rate

    named = re.fullmatch(r"(\d+)x([A-Za-z]+\d*)", text)
    try:
        return link_rate(int(named[1]), named[2].upper()) if named else float(text)
    except (KeyError, ValueError) as error:
        raise click.BadParameter(
            f"{text!r} is neither a rate such as 4xHDR nor bytes/s", param_hint="--rate"
        ) from error


def _told(report: Report, dry_run: bool) -> dict[str, Any]:
    intake, receipt = report.intake, report.receipt
    fabric = intake.fabric
    told: dict[str, Any] = {
        "dry_run": dry_run,
        "cluster": intake.cluster,
        "observed_at": intake.observed_at,
        "files": list(intake.files),
        "hosts": None if fabric is None else len(fabric.hosts),
        "switches": None if fabric is None else len(fabric.switches),
        "cables": None if fabric is None else fabric.cable_count,
        "tables": None if intake.tables is None else len(intake.tables.switch_guid),
        "profiles": [profile.name for profile in intake.profiles],
        "traces": sum(trace is not None for trace in intake.traces),
        "jobs": len(intake.jobs),
        "placements": [],
        "counters": [{"at": sweep.at, "ports": len(sweep)} for sweep in intake.counters],
        "intended": None if intake.intended is None else len(intake.intended),
        "warnings": list(report.warnings),
        "same_as": None if report.same_as is None else report.same_as.at,
        "compared_at": None if report.compared is None else report.compared.at,
        "disagreements": [] if report.compared is None else list(report.compared.disagreements),
    }
    if receipt is not None:
        told |= {
            "snapshot": receipt.snapshot,
            "new_snapshot": receipt.new_content,
            "new_observation": receipt.new_observation,
            "routing": receipt.routing,
            "new_routing": receipt.new_routing,
            "profile_ids": list(receipt.profiles),
            "new_profiles": receipt.new_profiles,
            "new_traces": receipt.new_traces,
            "new_jobs": receipt.jobs,
            "placements": list(receipt.placements),
            "new_counters": receipt.new_sweeps,
            "new_intended": receipt.new_intended,
            "links_opened": receipt.links_opened,
            "links_closed": receipt.links_closed,
            "seconds": receipt.seconds,
        }
    return told


def _print(told: dict[str, Any]) -> None:
    """One line a kind of thing that was read."""
    if told["same_as"] is not None:
        click.echo(f"the very same as read at {units.moment_text(told['same_as'])}: nothing added")
    if told["compared_at"] is not None:
        seen, found = units.moment_text(told["compared_at"]), len(told["disagreements"])
        what = f"{found} lines of disagreement above" if found else "they agree"
        click.echo(
            f"compared with the fabric of {told['cluster']} seen at {seen}: {what}; "
            "the files tell no ports, so nothing is replaced"
        )
    saved = "would be saved" if told["dry_run"] else "saved"
    if told["hosts"] is not None:
        seen = units.moment_text(told["observed_at"])
        news = "" if told["dry_run"] else f"; {_news(told)}"
        click.echo(
            f"fabric of {told['cluster']} seen at {seen}: {told['hosts']} hosts, "
            f"{told['switches']} switches, {told['cables']} cables{news}"
        )
    if told["tables"] is not None:
        known = "" if told.get("new_routing", True) else " (known already)"
        click.echo(f"forwarding tables of {told['tables']} switches{known}")
    for sweep in told["counters"]:
        click.echo(f"counters of {sweep['ports']} ports at {units.moment_text(sweep['at'])} read")
    if told["counters"] and not told["dry_run"]:
        click.echo(f"{told['new_counters']} of {len(told['counters'])} sweeps of counters new")
    if told["intended"] is not None:
        known = "" if told.get("new_intended", True) else " (known already)"
        click.echo(f"intended wiring of {told['intended']} cables{known}")
    for name in told["profiles"]:
        click.echo(f"profile {name} {saved}")
    if told["traces"]:
        click.echo(f"{told['traces']} traces read, {told.get('new_traces', 'none')} new")
    if told["jobs"]:
        click.echo(f"{told['jobs']} jobs read, {told.get('new_jobs', 'none')} new or changed")
    for name in told["placements"]:
        click.echo(f"placement {name} {saved}")


def _news(told: dict[str, Any]) -> str:
    if not told["new_observation"]:
        return "known already, nothing added"
    if not told["new_snapshot"]:
        return "as wired before"
    return f"{told['links_opened']} link directions new, {told['links_closed']} gone"
