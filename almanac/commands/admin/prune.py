"""``almanac db prune``: delete what the settings do not keep."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from almanac.options.common import current_settings, open_registry
from almanac.options.destructive import Destructive, destructive_options
from almanac.output.json.maintenance import pruned_to_json
from almanac.output.maintenance import pruned_lines
from almanac.output.printing import note, print_json, progress_bars, say


@click.command("prune")
@destructive_options
def prune(how: Destructive) -> None:
    """Delete old observations, counters, placements and ingest runs by the rules of the settings.

    The settings are keep_observations, keep_counters, keep_placements and keep_runs; by default all is kept.
    Ctrl-C is safe: the next call continues.
    """
    from registry.upkeep.retention import Pruned
    from registry.upkeep.retention import prune as delete_old

    settings = current_settings()
    rules = settings.retention()

    def act(dry_run: bool) -> Pruned:
        with open_registry() as registry, progress_bars() as progress:
            return delete_old(registry.database, rules, datetime.now(UTC), dry_run=dry_run, progress=progress)

    pruned = how.carry_out("Delete these", act, pruned_lines)
    if how.as_json:
        print_json(pruned_to_json(pruned, settings.keep, how.dry_run))
        return
    if all(rule == "all" for rule in settings.keep.values()):
        note("the settings keep all: see keep_observations, keep_counters, keep_placements, keep_runs")
    for line in pruned_lines(pruned):
        say(f"would delete: {line}" if how.dry_run and pruned.deleted else line)
