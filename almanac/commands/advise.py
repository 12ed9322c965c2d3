"""``almanac advise``: should a running job's ranks move, and how many of them?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from almanac.commands import searching
from almanac.commands.advise_cluster import CRON, advise_cluster
from almanac.commands.common import json_option, open_registry
from almanac.output import finite, print_json, print_table, progress_bars
from almanac.output.json.placements import curve_to_json

if TYPE_CHECKING:
    from mapping.placement.moves.advice import Advice
    from mapping.placement.moves.remapping import Curve
    from mapping.service import PlacementRequest


@click.command("advise")
@click.argument("profile", metavar="CLUSTER|PROFILE")
@click.argument("placement", metavar="[ID|FILE]", required=False)
@click.option("--job", help="A job whose hosts, free ones too, ranks may move to.")
@click.option("--cluster", help="Of the placement; or of --job where two clusters have one.")
@click.option("--moves", type=click.IntRange(min=0), help="Most ranks to move.")
@click.option("--iterations", type=float, default=1.0, show_default=True, help="That PROFILE recorded.")
@click.option("--rank-seconds", type=float, help="Seconds to migrate a rank.")
@click.option("--iterations-left", type=float, help="That the job still has to do.")
@searching.searching
@json_option
def command(
    profile: str,
    placement: str | None,
    job: str | None,
    cluster: str | None,
    moves: int | None,
    iterations: float,
    rank_seconds: float | None,
    iterations_left: float | None,
    request: PlacementRequest,
    as_json: bool,
) -> None:
    """Should running jobs move?

    With CLUSTER alone, for cron: looks for a better placement of each of its running jobs, the others'
    traffic as background, and saves present and better placement and the possible gain; --seconds are for
    each job (5 unless told). After an interrupt all that is done is saved.

    With PROFILE and a placement: seconds saved per iteration against ranks to migrate; saves nothing.
    """
    if placement is None:
        _check_alone(click.get_current_context())
        advise_cluster(profile, request, moves, as_json)
        return
    if job is None and cluster is None:
        raise click.UsageError("give --cluster, or --job")
    from mapping.placement.moves.advice import advise
    from mapping.placement.moves.remapping import find_curve
    from mapping.service import resolve

    keep = searching.read_order(placement, cluster or "files") or placement
    options = replace(request.options, moves=moves)
    request = replace(request, profile=profile, job=job, cluster=cluster, keep=keep)
    with open_registry() as registry, progress_bars() as progress:
        curve = find_curve(resolve(registry, request), options, progress)
    advice = advise(curve, iterations=iterations, rank_seconds=rank_seconds, iterations_left=iterations_left)
    if as_json:
        print_json(_told(curve, advice, rank_seconds, iterations_left))
    else:
        _show(curve, advice, rank_seconds, iterations_left)
    if not curve.complete:
        click.get_current_context().exit(130)


def _check_alone(ctx: click.Context) -> None:
    """A usage error for an option that means nothing where all jobs of a cluster are looked at."""
    for parameter in ctx.command.params:
        given = ctx.get_parameter_source(parameter.name or "") == ParameterSource.COMMANDLINE
        if given and parameter.name not in CRON:
            raise click.UsageError(
                f"{parameter.opts[0]} goes with PROFILE and ID|FILE, not with CLUSTER alone"
            )


def _told(
    curve: Curve, advice: tuple[Advice, ...], rank_seconds: float | None, left: float | None
) -> dict[str, Any]:
    pick = _pick(advice, rank_seconds, left)
    return {
        "objective": str(curve.objective),
        "complete": curve.complete,
        "curve": curve_to_json(curve),
        "advice": [
            {
                "moved": one.point.moved,
                "seconds_saved": one.seconds_saved,
                "saved_per_rank": one.saved_per_rank,
                "migration_seconds": one.migration_seconds,
                "break_even_iterations": finite(one.break_even_iterations),
                "worth_it": one.worth_it,
            }
            for one in advice
        ],
        "best_moved": None if pick is None else pick.point.moved,
    }


def _show(curve: Curve, advice: tuple[Advice, ...], rank_seconds: float | None, left: float | None) -> None:
    rows = [
        [
            one.point.moved,
            one.seconds_saved,
            one.saved_per_rank,
            one.migration_seconds,
            None if one.break_even_iterations is None else f"{one.break_even_iterations:.6g}",
            {True: "yes", False: "no", None: ""}[one.worth_it],
        ]
        for one in advice
    ]
    columns = [
        "moved",
        "s saved an iteration",
        "per moved rank",
        "s to migrate",
        "break-even iterations",
        "worth it",
    ]
    now = curve.points[0].score.congestion_seconds
    print_table(f"the worst link is busy for {now:.6g} s of what the profile holds", columns, rows)
    if not advice:
        click.echo("stay: no placement that was found is better")
    elif rank_seconds is not None and left is not None:
        pick = _pick(advice, rank_seconds, left)
        click.echo(
            "stay: migration costs more than it saves" if pick is None else f"move {pick.point.moved} ranks"
        )


def _pick(advice: tuple[Advice, ...], rank_seconds: float | None, left: float | None) -> Advice | None:
    from mapping.placement.moves.advice import best

    return None if rank_seconds is None or left is None else best(advice, left, rank_seconds)
