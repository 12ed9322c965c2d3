"""``almanac advise CLUSTER``: search and save a better placement for each running job, for cron."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from almanac.options.common import open_registry
from almanac.options.placement import with_default_seconds
from almanac.options.running_jobs import read_live
from almanac.output.json.running_jobs import cluster_advice_to_json
from almanac.output.printing import note, print_json, print_table, progress_bars
from almanac.output.running_jobs import CONVENTION, heading, note_omitted_jobs
from registry import units

if TYPE_CHECKING:
    from mapping.service import Advised, Live, PlacementRequest
    from registry.registry import Registry

SECONDS = 5.0
"""Default time to search for each job."""
CLUSTER_PARAMETERS = {
    *("profile", "as_json", "seconds", "steps", "seed", "workers", "moves", "at", "routing", "rails"),
}
"""Parameters of ``almanac advise`` that apply to a cluster."""
COLUMNS = (
    *("job", "user", "application", "worst link now", "worst link moved", "gain", "moved ranks"),
    *("present placement", "better placement"),
)
EXIT_NOTHING_DONE, EXIT_INTERRUPTED = 1, 130


def advise_cluster(cluster: str, request: PlacementRequest, moves: int | None, as_json: bool) -> None:
    """Search a better placement for each running job of a cluster; save and print them, largest gain first.

    Exit with 130 after an interrupt, and with 1 if jobs have profiles but none could be placed.
    """
    with open_registry() as registry:
        live, advised, complete = _advise(registry, cluster, request, moves)
    if as_json:
        print_json(cluster_advice_to_json(live, advised, complete))
    else:
        _show(live, advised)
        note_omitted_jobs(live)
    if not complete:
        click.get_current_context().exit(EXIT_INTERRUPTED)
    if not advised and len(live.running.jobs) > len(live.without_profile):
        click.get_current_context().exit(EXIT_NOTHING_DONE)


def _advise(
    registry: Registry, cluster: str, request: PlacementRequest, moves: int | None
) -> tuple[Live, list[Advised], bool]:
    """Return the running jobs, the advice for them, and whether no job was interrupted or left out."""
    from mapping.service import Unloaded, advise_all

    advised: list[Advised] = []
    with progress_bars() as progress:
        costs = request.costs
        live = read_live(registry, cluster, request.at, costs.routing, costs.rails, progress)
        options = replace(with_default_seconds(request, SECONDS).options, moves=moves)
        try:
            for one in advise_all(registry, live, options, progress):
                if isinstance(one, Unloaded):
                    note(f"job {one.job.stored.job.id} is not included: {one.reason}")
                else:
                    advised.append(one)
        except KeyboardInterrupt:
            return live, _by_gain(advised), False
    return live, _by_gain(advised), all(one.complete for one in advised)


def _by_gain(advised: list[Advised]) -> list[Advised]:
    return sorted(advised, key=lambda one: -one.advice.gain)


def _show(live: Live, advised: list[Advised]) -> None:
    """Print a row per job."""
    click.echo(heading(live))
    if not advised:
        return
    click.echo(CONVENTION)
    rows = [
        [
            one.advice.job,
            one.user,
            one.application,
            units.text(one.advice.present_seconds, units.SECONDS),
            units.text(one.advice.proposed_seconds, units.SECONDS),
            f"{one.advice.gain:.2f}",
            one.advice.moved,
            one.advice.present,
            one.advice.proposed or "move no ranks",
        ]
        for one in advised
    ]
    print_table("possible gain, with the traffic of all other jobs", COLUMNS, rows)
