"""``almanac selfcheck``: compare fast computations with slow and simple ones on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from almanac.commands.cluster.check import EXIT_PROBLEMS
from almanac.options.common import json_option, open_registry, seed_option
from almanac.output.json.self_checks import self_check_to_json
from almanac.output.printing import note, print_json, print_table, progress_bars

if TYPE_CHECKING:
    from mapping.selfcheck.oracles import Comparison
    from registry.model import Fabric

SHOWN = 5
"""Differences printed for each check."""


@click.command("selfcheck")
@click.argument("cluster", required=False)
@click.option(
    "--fabric",
    "files",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="Use a scan with its forwarding tables instead of the database (repeat; default: the sample scan).",
)
@click.option("--only", multiple=True, metavar="CHECK", help="Run only this check (repeat).")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.0, min_open=True),
    default=40.0,
    show_default=True,
    help="Time after which no comparison is started.",
)
@seed_option
@json_option
def command(
    cluster: str | None,
    files: tuple[str, ...],
    only: tuple[str, ...],
    seconds: float,
    seed: int,
    as_json: bool,
) -> None:
    """Compare what the program computes with slow and simple computations of the same.

    Uses CLUSTER's fabric, a scan, or the sample scan. Exits with 4 if values differ.
    """
    from mapping.selfcheck.checks import run

    if cluster and files:
        raise click.UsageError("give either a cluster of the database, or files with --fabric")
    fabric = _fabric(cluster, files)
    with progress_bars() as progress:
        results = [
            (entry.name, entry.about, comparison)
            for entry, comparison in run(fabric, only, seconds=seconds, seed=seed, progress=progress)
        ]
    if as_json:
        print_json({"checks": [self_check_to_json(*result) for result in results]})
    else:
        _show(results)
    if not all(comparison.agrees for _, _, comparison in results):
        click.get_current_context().exit(EXIT_PROBLEMS)


def _fabric(cluster: str | None, files: tuple[str, ...]) -> Fabric:
    """Return the fabric of a cluster, of files, or of the sample data."""
    if cluster is not None:
        with open_registry() as registry:
            return registry.fabrics.read(cluster).fabric
    from almanac.demo.fill import SCAN
    from almanac.options.files import read_fabric

    return read_fabric(files or tuple(str(path) for path in SCAN))


def _show(results: list[tuple[str, str, Comparison]]) -> None:
    """Print a row per check, and the first differences."""
    rows = [
        [name, _verdict(one), f"{one.compared} {one.unit}", one.largest_difference, about]
        for name, about, one in results
    ]
    print_table("", ["check", "result", "compared", "largest difference (relative)", "what"], rows)
    for name, _, one in results:
        for text in one.differences[:SHOWN]:
            note(f"{name}: {text}")


def _verdict(one: Comparison) -> str:
    if one.differences:
        return f"{len(one.differences)} differ"
    return "agrees" if one.compared else "nothing to compare"
