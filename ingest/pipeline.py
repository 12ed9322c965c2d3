"""The way of every file into the registry: read, recognise, parse, merge and check, save.

Nothing is written before everything has been read and checked, and then in one transaction: a call
that fails leaves the registry as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ingest import catalog
from ingest.merge import Source, merge
from ingest.options import Options
from ingest.source import SourceGroup, read_paths
from registry.errors import InputError, InvalidValue
from registry.intake import Intake, Receipt
from registry.progress import Progress, silent


class Saves(Protocol):
    """What the pipeline needs of a registry; `registry.registry.Registry` is one."""

    def save(self, intake: Intake, progress: Progress = silent) -> Receipt:
        """Save an intake as a whole or not at all."""


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
    """

    intake: Intake
    receipt: Receipt | None
    warnings: tuple[str, ...]


def ingest(
    registry: Saves | None,
    paths: Iterable[str | Path],
    options: Options | None = None,
    *,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Report:
    """Read the files and save what they hold.

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
    DatabaseError
        Nothing was saved.
    """
    intake = plan(paths, options or Options(), progress=progress)
    if dry_run or registry is None:
        return Report(intake=intake, receipt=None, warnings=intake.warnings)
    receipt = registry.save(intake, progress)
    warnings = tuple(dict.fromkeys((*intake.warnings, *receipt.warnings)))
    return Report(intake=intake, receipt=receipt, warnings=warnings)


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
    groups = read_paths(paths)
    if not groups:
        raise InputError("no files were given")
    sources: list[Source] = []
    for done, group in enumerate(groups):
        progress(f"reading {group.path}", done, len(groups))
        sources.extend(_parse(group, options))
    progress("checking", len(groups), len(groups))
    return merge(sources, options)


def _parse(group: SourceGroup, options: Options) -> Iterator[Source]:
    """Parse a group as a whole, or its files one by one where their format is not grouped."""
    format = catalog.find(options.format) if options.format else catalog.recognise(group)
    whole = [group] if format.grouped else _singly(group)
    for part in whole:
        try:
            parsed = format.parser().parse(part.files, options)
        except InvalidValue as error:
            raise InputError(str(error), path=part.path) from error
        yield Source(group=part, format=format.name, parsed=parsed)


def _singly(group: SourceGroup) -> list[SourceGroup]:
    return [SourceGroup(path=file.path, files=(file,)) for file in group.files]
