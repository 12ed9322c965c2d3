"""``almanac map``: find where a job's ranks should sit, save it, export it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from almanac.commands.common import Moment, json_option, open_registry, read_hosts
from almanac.output import note, print_json, print_table, progress_bars, write_text
from registry import units

if TYPE_CHECKING:
    from mapping.report import Metrics
    from mapping.service import Answer

OBJECTIVES = ("congestion", "hop-bytes", "dilation")


@click.command("map")
@click.argument("profile")
@click.option("--job", help="Place on this job's hosts and slots.")
@click.option("--cluster", help="Cluster of --hosts; or of --job where two clusters have one.")
@click.option("--hosts", metavar="HOSTLIST|@FILE", help="Hosts in launch order: node[01-16], or a file.")
@click.option("--slots", type=click.IntRange(min=1), help="Ranks a host takes (default: the job's, else 1).")
@click.option("--objective", type=click.Choice(OBJECTIVES), default="congestion", show_default=True)
@click.option("--routing", help="tables or shortest-paths (default: tables where complete).")
@click.option("--rails", default="all-connected", show_default=True, help="Or same-rail: docs/congestion.md.")
@click.option("--strategy", "strategies", multiple=True, help="Only these (repeat; a chain is a+b).")
@click.option(
    "--seconds", type=click.FloatRange(min=0.0, min_open=True), help="Time to search [default: 10]."
)
@click.option("--steps", type=click.IntRange(min=1), help="Proposals instead of seconds: repeatable bytes.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--at", type=Moment(), help="On the fabric as of this time (default: now).")
@click.option("--export", "exports", metavar="FORMAT=FILE", multiple=True, help="Write launcher files too.")
@json_option
def command(
    profile: str,
    job: str | None,
    cluster: str | None,
    hosts: str | None,
    slots: int | None,
    objective: str,
    routing: str | None,
    rails: str,
    strategies: tuple[str, ...],
    seconds: float | None,
    steps: int | None,
    seed: int,
    at: datetime | None,
    exports: tuple[str, ...],
    as_json: bool,
) -> None:
    """Find a placement of PROFILE's ranks that congests the fabric least."""
    if (job is None) == (hosts is None):
        raise click.UsageError("give either --job or --cluster with --hosts")
    if hosts is not None and cluster is None:
        raise click.UsageError("--hosts needs --cluster")
    if seconds is not None and steps is not None:
        raise click.UsageError("give either --seconds or --steps")
    from mapping.exports.catalog import write
    from mapping.service import Question, answer

    files = _export_files(exports)
    question = Question(
        profile=profile,
        job=job,
        cluster=cluster,
        hosts=None if hosts is None else read_hosts(hosts),
        slots=slots,
        objective=objective,
        routing=routing,
        rails=rails,
        strategies=strategies or None,
        seconds=10.0 if seconds is None else seconds,
        steps=steps,
        seed=seed,
        at=at,
    )
    with open_registry() as registry, progress_bars() as progress:
        found = answer(registry, question, progress)
    for name, path in files.items():
        write_text(path, write(name, found.placement, found.fabric))
        note(f"{name} written to {path}")
    if as_json:
        print_json(found.told())
    else:
        show_answer(found)
    if not found.placement.complete:
        click.get_current_context().exit(130)


def show_answer(found: Answer) -> None:
    """The one clear table, what it was computed on, and what it proves."""
    from mapping.report import Metrics, worst_link

    placement, bounds = found.placement, found.bounds
    rows = [
        _row("in order", Metrics.of(found.baseline), str(worst_link(found.fabric, found.baseline) or "")),
        _row("random, mean of 5", found.random, ""),
        _row("found", Metrics.of(found.evaluation), str(worst_link(found.fabric, found.evaluation) or "")),
        [
            "certified lower bound",
            units.text(bounds["congestion_seconds"].value, units.SECONDS),
            units.text(bounds["network_congestion_seconds"].value, units.SECONDS),
            f"{bounds['hop_bytes'].value:.4e}",
            "",
            "",
        ],
    ]
    title = (
        f"{found.profile_name}: {placement.ranks} ranks on {len(placement.allocation)} hosts of "
        f"{found.cluster}; objective {placement.objective}; routes: {placement.routing}, "
        f"{found.routing_because}"
    )
    columns = ["placement", "worst link", "worst network link", "hop-bytes", "dilation", "the worst link"]
    print_table(title, columns, rows)
    for line in _remarks(found):
        click.echo(line)


def _row(label: str, metrics: Metrics, where: str) -> list[str]:
    return [
        label,
        units.text(metrics.congestion_seconds, units.SECONDS),
        units.text(metrics.network_congestion_seconds, units.SECONDS),
        f"{metrics.hop_bytes:.4e}",
        f"{metrics.average_dilation:.3f}",
        where,
    ]


def _remarks(found: Answer) -> list[str]:
    placement, bound = found.placement, found.bounds["congestion_seconds"]
    state = "" if placement.complete else " (interrupted: the best so far)"
    lines = [
        f"placement {found.placement_id}, found by {placement.strategy} in {placement.seconds:.1f} s, "
        f"{placement.steps} proposals{state}"
    ]
    if bound.value > 0:
        ratio = found.evaluation.congestion_seconds / bound.value
        lines.append(f"the worst link is at most {ratio:.2f} times the best possible: {bound.proof}")
    return lines


def _export_files(exports: tuple[str, ...]) -> dict[str, str]:
    from mapping.exports.catalog import FORMATS

    files = {}
    for item in exports:
        name, equals, path = item.partition("=")
        if not equals or not path:
            raise click.BadParameter(f"{item!r} is not FORMAT=FILE", param_hint="--export")
        if name not in FORMATS:
            known = ", ".join(FORMATS)
            raise click.BadParameter(f"there is no format {name!r}; known: {known}", param_hint="--export")
        files[name] = path
    return files
