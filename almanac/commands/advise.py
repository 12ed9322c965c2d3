"""``almanac advise``: does it pay to move ranks of running jobs, and how many?"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import click

from almanac.options import (
    DefaultGroup,
    json_option,
    open_registry,
    optional_cluster,
    read_order,
    running_jobs_options,
    scheduler_option,
)
from almanac.output.placements import advice_to_json, changes_text, compared_metrics_to_json
from almanac.output.printing import kernel_progress_bars, note, print_json, print_table, say
from almanac.output.running_jobs import (
    CONVENTION,
    cluster_advice_to_json,
    heading,
    note_omitted_jobs,
    profile_names,
)
from almanac.placing_options import limit_options, search_options, with_default_seconds
from registry import units

if TYPE_CHECKING:
    from mapping.cluster import Cluster
    from mapping.distances.cost_model import CostModel
    from mapping.placement.moves import Advice, Curve
    from mapping.placement.search import SearchOptions
    from mapping.questions.advise import Advised
    from mapping.questions.live import Live
    from mapping.questions.place import PlacementRequest
    from registry.progress import Progress
    from registry.registry import Registry

SECONDS = 5.0
"""Default time to search for each job."""
CLUSTER_COLUMNS = (
    *("job", "user", "profile", "worst link now", "worst link moved", "gain", "moved ranks"),
    "other metrics",
    *("present placement", "better placement"),
)
EXIT_NOTHING_DONE, EXIT_INTERRUPTED = 1, 130
COLUMNS = (
    *("moved ranks", "saved (s/iteration)", "saved per moved rank", "migration (s)"),
    *("break-even iterations", "pays off", "other metrics"),
)


@click.group("advise", cls=DefaultGroup, default="jobs")
def command() -> None:
    """Report whether moving ranks pays off: for a cluster's running jobs (default), or for one placement."""


@command.command("jobs")
@click.argument("cluster")
@click.option("--moves", type=click.IntRange(min=0), help="Maximum number of ranks of a job to move.")
@running_jobs_options
@limit_options
@scheduler_option("the searches of all jobs")
@json_option
def jobs(
    cluster: str,
    moves: int | None,
    at: datetime | None,
    costs: CostModel,
    limits: SearchOptions,
    scheduler: str | None,
    as_json: bool,
) -> None:
    """Search a better placement for each running job of CLUSTER, largest gain first; for cron.

    The traffic of the other jobs is the background. The present and the better placement are saved with the
    possible gain. --seconds applies to each job. After an interrupt the results so far are saved.

    Exits with 1 if jobs have profiles but none could be placed.
    """
    from mapping.questions.live import traffic

    options = replace(with_default_seconds(limits, SECONDS), moves=moves)
    with open_registry() as registry, kernel_progress_bars() as progress:
        live = traffic(registry, cluster, at, costs, progress)
        with optional_cluster(scheduler) as machines:
            advised, complete = _advise_jobs(registry, live, options, progress, machines)
    if as_json:
        print_json(cluster_advice_to_json(live, advised, complete))
    else:
        _show_cluster(live, advised)
        note_omitted_jobs(live)
    if not complete:
        click.get_current_context().exit(EXIT_INTERRUPTED)
    if not advised and len(live.running.jobs) > len(live.without_profile):
        click.get_current_context().exit(EXIT_NOTHING_DONE)


@command.command("placement")
@click.argument("profile")
@click.argument("placement", type=click.Path(), metavar="ID|FILE")
@click.option("--job", help="Job whose hosts, including its free ones, the ranks may move to.")
@click.option(
    "--cluster", help="Cluster of the placement, or of --job if two clusters have a job with this id."
)
@click.option("--moves", type=click.IntRange(min=0), help="Maximum number of ranks to move.")
@click.option(
    "--iterations", type=float, default=1.0, show_default=True, help="Iterations recorded in PROFILE."
)
@click.option("--rank-seconds", type=float, help="Time to migrate a rank, in seconds.")
@click.option("--iterations-left", type=float, help="Iterations that the job still has to run.")
@search_options
@json_option
def advise_placement(
    profile: str,
    placement: str,
    job: str | None,
    cluster: str | None,
    moves: int | None,
    iterations: float,
    rank_seconds: float | None,
    iterations_left: float | None,
    request: PlacementRequest,
    as_json: bool,
) -> None:
    """Print the seconds saved per iteration for each number of ranks moved from a placement; save nothing."""
    if job is None and cluster is None:
        raise click.UsageError("add --cluster NAME or --job ID")
    from mapping.placement.moves import advise, best, find_curve
    from mapping.questions.place import resolve

    keep = read_order(placement) or placement
    options = replace(request.options, moves=moves)
    request = replace(request, profile=profile, job=job, cluster=cluster, keep=keep, options=options)
    with open_registry() as registry, kernel_progress_bars() as progress:
        curve = find_curve(resolve(registry, request), progress)
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
        click.get_current_context().exit(EXIT_INTERRUPTED)


def _show(curve: Curve, advice: tuple[Advice, ...]) -> None:
    """Print the gain for each number of moved ranks."""
    present = curve.points[0].score._asdict()
    rows = [
        [
            one.point.moved,
            one.seconds_saved,
            one.saved_per_rank,
            one.migration_seconds,
            None if one.break_even_iterations is None else f"{one.break_even_iterations:.6g}",
            one.worth_it,
            changes_text(present, one.point.score._asdict()),
        ]
        for one in advice
    ]
    now = curve.points[0].score.congestion_seconds
    print_table(f"present placement: the worst link is busy for {now:.6g} s per profile", COLUMNS, rows)


def _recommend(advice: tuple[Advice, ...], pick: Advice | None, is_cost_known: bool) -> None:
    """Print how many ranks to move, if the costs are known."""
    if not advice:
        say("move no ranks: no better placement was found")
    elif is_cost_known:
        no_gain = "move no ranks: migration costs more than it saves"
        say(no_gain if pick is None else f"move {pick.point.moved} ranks")


def _advise_jobs(
    registry: Registry, live: Live, options: SearchOptions, progress: Progress, machines: Cluster | None
) -> tuple[list[Advised], bool]:
    """Return the advice for the running jobs, and whether no search was interrupted."""
    from mapping.questions.advise import advise_all
    from mapping.questions.live import Unloaded

    advised: list[Advised] = []
    try:
        for one in advise_all(registry, live, options, progress, machines):
            if isinstance(one, Unloaded):
                note(f"job {one.job.stored.job.id} is not included: {one.reason}")
            else:
                advised.append(one)
    except KeyboardInterrupt:
        return _by_gain(advised), False
    return _by_gain(advised), all(one.complete for one in advised)


def _by_gain(advised: list[Advised]) -> list[Advised]:
    return sorted(advised, key=lambda one: -one.advice.gain)


def _show_cluster(live: Live, advised: list[Advised]) -> None:
    """Print a row per job."""
    say(heading(live))
    if not advised:
        return
    say(CONVENTION)
    profiles = profile_names(live)
    rows = [
        [
            one.advice.job,
            one.user,
            profiles[one.advice.job],
            units.text(one.advice.present_seconds, units.SECONDS),
            units.text(one.advice.proposed_seconds, units.SECONDS),
            f"{one.advice.gain:.2f}",
            one.advice.moved,
            changes_text(compared_metrics_to_json(one.before), compared_metrics_to_json(one.after)),
            one.advice.present,
            one.advice.proposed or "move no ranks",
        ]
        for one in advised
    ]
    least = ("present placement", "user", "profile", "worst link now")
    print_table("possible gain, with the traffic of all other jobs", CLUSTER_COLUMNS, rows, least=least)
