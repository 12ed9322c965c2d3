"""``almanac advise CLUSTER``: what remapping each running job would give, saved; for cron."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from almanac.commands import running, searching
from almanac.commands.common import open_registry
from almanac.output import note, print_json, print_table, progress_bars
from registry import units

if TYPE_CHECKING:
    from mapping.service import Advised, Live, PlacementRequest
    from registry.registry import Registry

SECONDS = 5.0
"""To search for each job unless told."""
CRON = {
    *("profile", "as_json", "seconds", "steps", "seed", "workers", "moves", "at", "routing", "rails"),
}
"""Parameters of ``almanac advise`` that this form takes."""
EXIT_NOTHING_DONE, EXIT_INTERRUPTED = 1, 130


def advise_cluster(cluster: str, request: PlacementRequest, moves: int | None, as_json: bool) -> None:
    """Look at each running job of a cluster, save what is found, and tell it, the largest gain first.

    Exits with 130 after an interrupt, and with 1 where jobs have profiles and none could be looked at.
    """
    with open_registry() as registry:
        live, done, complete = _done(registry, cluster, request, moves)
    if as_json:
        print_json({**running.heading_told(live), "complete": complete, "jobs": [_told(one) for one in done]})
    else:
        _show(live, done)
        running.tell_left_out(live)
    if not complete:
        click.get_current_context().exit(EXIT_INTERRUPTED)
    if not done and len(live.running.jobs) > len(live.without_profile):
        click.get_current_context().exit(EXIT_NOTHING_DONE)


def _done(
    registry: Registry, cluster: str, request: PlacementRequest, moves: int | None
) -> tuple[Live, list[Advised], bool]:
    """What runs, what was found, and whether all jobs had their turn."""
    from mapping.service import Unloaded, advise_all

    done: list[Advised] = []
    with progress_bars() as progress:
        costs = request.costs
        live = running.read_live(registry, cluster, request.at, costs.routing, costs.rails, progress)
        options = replace(searching.with_default_seconds(request, SECONDS).options, moves=moves)
        found = advise_all(registry, live, options, progress)
        try:
            for one in found:
                if isinstance(one, Unloaded):
                    note(f"job {one.job.stored.job.id} is left out: {one.reason}")
                else:
                    done.append(one)
        except KeyboardInterrupt:
            return live, _by_gain(done), False
    return live, _by_gain(done), all(one.complete for one in done)


def _by_gain(done: list[Advised]) -> list[Advised]:
    return sorted(done, key=lambda one: -one.advice.gain)


def _told(one: Advised) -> dict[str, Any]:
    told = asdict(one.advice)
    del told["cluster"], told["at"]
    return {**told, "user": one.user, "application": one.application, "gain": one.advice.gain}


def _show(live: Live, done: list[Advised]) -> None:
    click.echo(running.header(live))
    if not done:
        return
    click.echo(running.CONVENTION)
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
            one.advice.proposed or "stay",
        ]
        for one in done
    ]
    columns = ["job", "user", "application", "worst link now", "would be", "gain", "moved", "now", "better"]
    print_table("possible gain, the others' traffic as background", columns, rows)
