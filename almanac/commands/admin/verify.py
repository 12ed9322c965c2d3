"""``almanac db verify``: compare what is stored with its ids, and the derived graph with the observations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from almanac.options.common import current_settings, json_option, open_registry
from almanac.output.json.maintenance import verification_to_json
from almanac.output.maintenance import repair_lines
from almanac.output.printing import print_json, print_table, progress_bars, say

if TYPE_CHECKING:
    from registry.upkeep.verify import Verification

EXIT_PROBLEMS = 4
"""Exit code if problems are left, or something was lost."""


@click.command("verify")
@click.option(
    "--repair",
    "with_repair",
    is_flag=True,
    help="Restore what can be computed, rebuild derived graphs, delete what cannot be read; see "
    "docs/how-to/stored-data.md.",
)
@json_option
def verify(with_repair: bool, as_json: bool) -> None:
    """Read everything that is stored and report what is damaged.

    Every record with an id that is made from its content is compared with it, and the graph of each cluster
    with the one that its observations give. Files of the embedded server are compared with their digests at
    each start. Exit with 4 if something is damaged, or was deleted.
    """
    from registry.upkeep.deletion import NAMES
    from registry.upkeep.verify import repair
    from registry.upkeep.verify import verify as read_all

    first, done = _without_records(), None
    if first is None:
        with open_registry() as registry, progress_bars() as progress:
            first = last = read_all(registry.database, progress)
            if with_repair and first.damaged and not first.has_damaged_files:
                done = repair(registry.database, first.findings)
                last = read_all(registry.database, progress)
    else:
        last = first
    if as_json:
        print_json(verification_to_json(first, last, done))
    else:
        rows = [[one.problem, one.kind, one.id, one.reason] for one in first.findings]
        if rows:
            print_table("", ["problem", "of", "id", "found"], rows, least=("problem",))
        for line in repair_lines(done) if done is not None else ():
            say(line)
        checked = sum(first.checked.values())
        kinds = ", ".join(f"{count:,} {NAMES[label]}" for label, count in sorted(first.checked.items()))
        nothing = "no record can be read" if first.has_damaged_files else "nothing is stored"
        say(f"{checked:,} records compared with their content: {kinds}" if checked else nothing)
        say(_summary(last, done is not None))
    if last.damaged or (done is not None and done.deleted):
        click.get_current_context().exit(EXIT_PROBLEMS)


def _without_records() -> Verification | None:
    """Return the damage of files with which the embedded server does not start; None if it starts."""
    from registry.errors import DatabaseError
    from registry.upkeep.verify import Verification, file_findings

    settings = current_settings()
    try:
        with progress_bars() as progress:
            settings.open_registry(progress).close()
    except DatabaseError:
        found = file_findings(settings.home) if settings.db is None else ()
        if not found:
            raise
        return Verification(checked={}, findings=found)
    return None


def _summary(found: Verification, repaired: bool) -> str:
    """Return the last line."""
    left = len(found.findings)
    if not left:
        return "no problems are left" if repaired else "no problems found"
    if found.has_damaged_files:
        from registry.database.embedded_files import REMEDY

        return f"{left} problems found, which --repair cannot repair as files are damaged: {REMEDY}"
    if not found.damaged:
        return f"{left} ids differ without damage: their cluster was renamed, or an early version saved them"
    remedy = (
        "restore a backup" if repaired else "almanac db verify --repair repairs them, or restore a backup"
    )
    return f"{left} problems {'are left' if repaired else 'found'}: {remedy}"
