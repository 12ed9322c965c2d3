"""Text about deleted and moved data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from almanac.output.printing import print_json, say

if TYPE_CHECKING:
    from almanac.options.destructive import Destructive
    from registry.upkeep.clusters import Move
    from registry.upkeep.deletion import Deletion
    from registry.upkeep.retention import Pruned
    from registry.upkeep.verify import Repair


def deletion_lines(deletion: Deletion) -> Iterator[str]:
    """Yield lines about what is deleted: numbers by kind, and each thing that depended on it."""
    yield _counts(deletion.counts) or "nothing"
    for kind, ids in deletion.dependents.items():
        yield from (f"depends on it: {kind.removesuffix('s')} {identity}" for identity in ids)
    yield from (f"loses its profile: job {identity}" for identity in deletion.jobs)


def move_lines(move: Move) -> Iterator[str]:
    """Yield lines about what is renamed or merged."""
    yield _counts(move.moved) or "nothing"
    if move.known:
        yield f"already there: {_counts(move.known)}"
    yield from (f"conflict: {text}" for text in move.conflicts)


def pruned_lines(pruned: Pruned) -> Iterator[str]:
    """Yield a line about each cluster of which something is deleted."""
    for cluster, counts in pruned.deleted.items():
        yield f"{cluster or 'no cluster'}: {_counts(counts)}"
    if not pruned.deleted:
        yield "nothing to delete"
    if pruned.skipped:
        yield f"kept until the next time, as new results use them: {pruned.skipped:,}"


def print_deletion(deletion: Deletion, how: Destructive) -> None:
    """Print what was deleted, or would be."""
    from almanac.output.json.maintenance import deletion_to_json

    if how.as_json:
        print_json(deletion_to_json(deletion, how.dry_run))
        return
    first, *others = deletion_lines(deletion)
    say(f"{'would delete' if how.dry_run else 'deleted'}: {first}")
    for line in others:
        say(line)


def print_move(move: Move, how: Destructive) -> None:
    """Print what was renamed or merged, or would be."""
    from almanac.output.json.maintenance import move_to_json

    if how.as_json:
        print_json(move_to_json(move, how.dry_run))
        return
    first, *others = move_lines(move)
    say(f"{'would move' if how.dry_run else 'moved'}: {first}")
    for line in others:
        say(line)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items())


def repair_lines(repair: Repair) -> Iterator[str]:
    """Yield lines about what was repaired, and every record that was deleted."""
    from registry.upkeep.deletion import NAMES

    yield from (f"restored from the derived graph: snapshot {identity}" for identity in repair.restored)
    yield from (f"joined to its cluster again: {identity}" for identity in repair.joined)
    yield from (f"rebuilt: derived graph of {cluster}" for cluster in repair.rebuilt)
    for label, ids in repair.deleted.items():
        yield from (f"deleted: {NAMES[label]}: {identity}" for identity in ids)
    if repair.deleted:
        yield "deleted data can be ingested again from their files, or are in an earlier backup"
