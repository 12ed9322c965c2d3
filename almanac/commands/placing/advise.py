"""``almanac advise``: does it pay to move ranks of running jobs, and how many?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from almanac.commands.placing.advise_cluster import CLUSTER_PARAMETERS, advise_cluster
from almanac.options.common import json_option, open_registry
from almanac.options.files import read_order
from almanac.options.placement import search_options
from almanac.output.json.placements import advice_to_json
from almanac.output.printing import print_json, print_table, progress_bars

if TYPE_CHECKING:
    from mapping.placement.moves.advice import Advice
    from mapping.placement.moves.remapping import Curve
    from mapping.service import PlacementRequest

COLUMNS = (
    *("moved ranks", "saved (s/iteration)", "saved per moved rank", "migration (s)"),
    *("break-even iterations", "pays off"),
)


@click.command("advise")
@click.argument("profile", metavar="CLUSTER|PROFILE")
@click.argument("placement", metavar="[ID|FILE]", required=False)
@click.option("--job", help="Job whose hosts, including its free ones, the ranks may move to.")
@click.option(
    "--cluster", help="Cluster of the placement, or of --job if two clusters have a job with this id."
)
@click.option("--moves", type=click.IntRange(min=0), help="Most ranks to move.")
@click.option(
    "--iterations", type=float, default=1.0, show_default=True, help="Iterations recorded in PROFILE."
)
@click.option("--rank-seconds", type=float, help="Time to migrate a rank, in seconds.")
@click.option("--iterations-left", type=float, help="Iterations that the job still has to run.")
@search_options
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
    """Report whether moving ranks of running jobs pays off.

    With CLUSTER alone, for cron: search a better placement for each running job, with the traffic of the
    other jobs as background. The present and the better placement are saved with the possible gain.
    --seconds applies to each job (default: 5). After an interrupt the results so far are saved.

    With PROFILE and a placement: print the seconds saved per iteration for each number of moved ranks;
    nothing is saved.
    """
    if placement is None:
        _check_cluster_options(click.get_current_context())
        advise_cluster(profile, request, moves, as_json)
        return
    if job is None and cluster is None:
        raise click.UsageError("give --cluster or --job")
    from mapping.placement.moves.advice import advise, best
    from mapping.placement.moves.remapping import find_curve
    from mapping.service import resolve

    keep = read_order(placement, cluster or "files") or placement
    options = replace(request.options, moves=moves)
    request = replace(request, profile=profile, job=job, cluster=cluster, keep=keep)
    with open_registry() as registry, progress_bars() as progress:
        curve = find_curve(resolve(registry, request), options, progress)
    advice = advise(curve, iterations=iterations, rank_seconds=rank_seconds, iterations_left=iterations_left)
    pick = None
    if rank_seconds is not None and iterations_left is not None:
        pick = best(advice, iterations_left, rank_seconds)
    if as_json:
        print_json(advice_to_json(curve, advice, pick))
    else:
        _show(curve, advice)
        _recommend(advice, pick, rank_seconds is not None and iterations_left is not None)
    if not curve.complete:
        click.get_current_context().exit(130)


def _check_cluster_options(ctx: click.Context) -> None:
    """Raise a usage error for an option that has no meaning for all jobs of a cluster."""
    for parameter in ctx.command.params:
        given = ctx.get_parameter_source(parameter.name or "") == ParameterSource.COMMANDLINE
        if given and parameter.name not in CLUSTER_PARAMETERS:
            raise click.UsageError(
                f"{parameter.opts[0]} goes with PROFILE and ID|FILE, not with CLUSTER alone"
            )


def _show(curve: Curve, advice: tuple[Advice, ...]) -> None:
    """Print the gain for each number of moved ranks."""
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
    now = curve.points[0].score.congestion_seconds
    print_table(f"present placement: the worst link is busy for {now:.6g} s per profile", COLUMNS, rows)


def _recommend(advice: tuple[Advice, ...], pick: Advice | None, is_cost_known: bool) -> None:
    """Print how many ranks to move, if the costs are known."""
    if not advice:
        click.echo("move no ranks: no better placement was found")
    elif is_cost_known:
        no_gain = "move no ranks: migration costs more than it saves"
        click.echo(no_gain if pick is None else f"move {pick.point.moved} ranks")
