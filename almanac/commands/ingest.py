"""``almanac ingest``: load files of fabric tools, schedulers and MPI libraries."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from almanac.commands.common import Moment, json_option, open_registry
from almanac.output import note, print_json, progress_bars
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
@click.option("--allow-missing-ranks", is_flag=True, help="Take a recording that lacks some ranks' files.")
@click.option("--dry-run", is_flag=True, help="Read and check everything, save nothing.")
@json_option
def command(
    paths: tuple[str, ...],
    cluster: str | None,
    format_name: str | None,
    observed_at: datetime | None,
    name: str | None,
    rate: str | None,
    allow_missing_ranks: bool,
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
        allow_missing_ranks=allow_missing_ranks,
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
        "jobs": len(intake.jobs),
        "placements": [],
        "warnings": list(report.warnings),
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
            "new_jobs": receipt.jobs,
            "placements": list(receipt.placements),
            "links_opened": receipt.links_opened,
            "links_closed": receipt.links_closed,
            "seconds": receipt.seconds,
        }
    return told


def _print(told: dict[str, Any]) -> None:
    """One line a kind of thing that was read."""
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
    for name in told["profiles"]:
        click.echo(f"profile {name} {saved}")
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
