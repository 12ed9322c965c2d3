"""The way of every file into the registry: read, recognise, parse, merge and check, save.

Nothing is written before everything has been read and checked, and then in one transaction: a call
that fails leaves the registry as it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from ingest import catalog
from ingest.catalog import Format
from ingest.formats.profiles.doubling import divided
from ingest.grouping import gather
from ingest.merging.identities import tells_ports
from ingest.merging.merge import Source, merge, told_fabrics
from ingest.merging.stored import Comparison, compare_with_stored
from ingest.options import Options
from ingest.reading.source import SourceGroup, read_paths
from registry.errors import InputError, InvalidValue
from registry.fabrics.fabrics import Snapshot
from registry.ingest_runs.runs import Attempt, RunInfo
from registry.model.intake import Intake, Receipt
from registry.progress import Progress, silent
from registry.version import code_version


class Saves(Protocol):
    """What the pipeline needs of a registry; `registry.registry.Registry` is one."""

    def save(self, intake: Intake, progress: Progress = silent) -> Receipt:
        """Save an intake as a whole or not at all."""

    def last_seen(self, cluster: str, at: datetime) -> Snapshot | None:
        """The fabric of a cluster as of a time; None where none was seen until then."""

    def same(self, key: str) -> RunInfo | None:
        """The last good run that read the very same."""

    def unchanged(self, attempt: Attempt, known: RunInfo) -> None:
        """Record a call that reads the very same as a good one before it."""

    def failed(self, attempt: Attempt, error: BaseException) -> None:
        """Record a call that failed before it came to saving; must not raise."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """What an ingest read and what it changed.

    Attributes
    ----------
    intake : Intake
        With the warnings of reading.
    receipt : Receipt or None
        None after a dry run.
    warnings : tuple of str
        All of them, those of saving behind those of reading.
    same_as : RunInfo or None
        The earlier run that read the very same: nothing was parsed, `intake` and `receipt` hold nothing new.
    compared : Comparison or None
        A fabric without ports was compared with the one that is stored, and is not kept.
    """

    intake: Intake
    receipt: Receipt | None
    warnings: tuple[str, ...]
    same_as: RunInfo | None = None
    compared: Comparison | None = None


def ingest(
    registry: Saves | None,
    paths: Iterable[str | Path],
    options: Options | None = None,
    *,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Report:
    """Read the files and save what they hold.

    Where a good run has read the very same before (bytes, names, times and options), nothing is parsed. A
    fabric without ports (a scheduler's tree) does not take the place of one with them: the two are compared.

    Parameters
    ----------
    registry : Registry or None
        None will do for a dry run.
    paths : iterable of str or Path
        Files, folders, archives, or ``-`` for standard input.
    options : Options, optional
    dry_run : bool
        Read and check everything, save nothing.
    progress : Progress

    Raises
    ------
    InputError, UnknownFormat, UnknownName, ConfigError
        What `plan` raises; nothing was saved.
    PoorerSource
        A fabric without ports that has nothing in common with the stored one.
    DatabaseError
        Nothing was saved.
    """
    options, files = options or Options(), tuple(map(str, paths))
    if dry_run or registry is None:
        intake = plan(files, options, progress=progress)
        return Report(intake=intake, receipt=None, warnings=intake.warnings)
    attempt = Attempt(started_at=datetime.now(UTC), cluster=options.cluster, files=files)
    try:
        groups = read_paths(files)
        attempt = replace(attempt, key=_key(groups, options, progress))
        known = registry.same(attempt.key)
        if known is not None and _repeats_nothing(known):
            return _as_before(registry, attempt, known)
        found = _recognised(groups, options)
        attempt = replace(attempt, formats=tuple(format.name for format, _ in found))
        sources = _sources(found, options, progress)
        intake = replace(merge(sources, options), started_at=attempt.started_at, key=attempt.key)
        intake, compared = _beside_stored(registry, intake, sources)
    except Exception as error:
        registry.failed(attempt, error)
        raise
    receipt = registry.save(intake, progress)
    warnings = tuple(dict.fromkeys((*intake.warnings, *receipt.warnings)))
    return Report(intake=intake, receipt=receipt, warnings=warnings, compared=compared)


def _beside_stored(
    registry: Saves, intake: Intake, sources: Sequence[Source]
) -> tuple[Intake, Comparison | None]:
    """The intake, without a fabric that tells no ports where the stored one does: they are compared."""
    fabric, cluster, at = intake.fabric, intake.cluster, intake.observed_at
    if fabric is None or cluster is None or at is None or tells_ports(fabric):
        return intake, None
    last = registry.last_seen(cluster, at)
    if last is None or not tells_ports(last.fabric):
        return intake, None
    told = told_fabrics(sources)
    compared = compare_with_stored(cluster, intake.source, told, last.fabric, last.observed_at)
    # Without a key: the same files again are compared again, with what is stored by then.
    rest = replace(intake, fabric=None, key="", warnings=(*intake.warnings, *compared.disagreements))
    return rest, compared


def plan(
    paths: Iterable[str | Path], options: Options | None = None, *, progress: Progress = silent
) -> Intake:
    """What the files hold, merged and checked; touches no database.

    Raises
    ------
    InputError
        With file, line, text and reason.
    UnknownFormat
        A file that no format claims.
    UnknownName
        A name in one file that another one should have.
    ConfigError
        An option that is missing or does not fit.
    """
    options = options or Options()
    return merge(_sources(_recognised(read_paths(paths), options), options, progress), options)


def _recognised(groups: Sequence[SourceGroup], options: Options) -> list[tuple[Format, SourceGroup]]:
    """Each source with its format."""
    if not groups:
        raise InputError("no files were given")
    return gather(groups, options.format)


def _sources(
    found: Sequence[tuple[Format, SourceGroup]], options: Options, progress: Progress
) -> list[Source]:
    """All sources, parsed."""
    sources: list[Source] = []
    for done, (format, group) in enumerate(found):
        progress(f"reading {group.path}", done, len(found))
        sources.extend(_parse(format, group, options, progress))
    progress("checking", len(found), len(found))
    return sources


def _key(groups: Iterable[SourceGroup], options: Options, progress: Progress) -> str:
    """Hash of all that decides what a call saves; where it is that of a good run, nothing is new."""
    digest = hashlib.sha256(f"{code_version()}\n{options!r}\n".encode())
    for group in groups:
        for file in group.files:
            told = f"{group.path}\n{file.path}\n{file.modified_at.isoformat()}\n{file.size}\n"
            digest.update(told.encode("utf-8", "surrogateescape"))
            for piece in file.watched(progress, f"comparing {file.path}").pieces():
                digest.update(piece)
    return digest.hexdigest()


def _repeats_nothing(known: RunInfo) -> bool:
    """Whether doing a run again changes nothing; placements go with the fabric that is there by now."""
    formats = {format.name: format for format in catalog.FORMATS}
    return all(name in formats and formats[name].kind != "placement" for name in known.formats)


def _as_before(registry: Saves, attempt: Attempt, known: RunInfo) -> Report:
    """The report of a call that reads the very same as an earlier one."""
    again = replace(attempt, formats=known.formats, digest=known.digest, warnings=known.warnings)
    registry.unchanged(again, known)
    intake = Intake(
        cluster=attempt.cluster or None,
        source=", ".join(known.formats),
        files=known.files,
        warnings=known.warnings,
        digest=known.digest,
        key=attempt.key,
        started_at=attempt.started_at,
    )
    receipt = Receipt(
        cluster=intake.cluster,
        snapshot=known.snapshot or None,
        routing=known.routing or None,
        profiles=known.profiles,
        warnings=known.warnings,
    )
    return Report(intake=intake, receipt=receipt, warnings=known.warnings, same_as=known)


def _parse(format: Format, group: SourceGroup, options: Options, progress: Progress) -> Iterator[Source]:
    """Parse a group as a whole, or its files one by one where their format is not grouped."""
    whole = [group] if format.grouped else _singly(group)
    for part in whole:
        files = tuple(file.watched(progress, f"reading {file.path}") for file in part.files)
        if not format.streamed:
            files = tuple(file.held() for file in files)
        try:
            parsed = divided(format.parser().parse(files, options), options.divide, part.path)
        except InvalidValue as error:
            raise InputError(str(error), path=part.path) from error
        yield Source(group=part, format=format.name, parsed=parsed)


def _singly(group: SourceGroup) -> list[SourceGroup]:
    return [SourceGroup(path=file.path, files=(file,)) for file in group.files]
