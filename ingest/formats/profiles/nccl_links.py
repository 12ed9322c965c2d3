"""Profiles from the rings and trees of NCCL: links without bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingest.formats.profiles.shared import stem
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Profile


def wanted(options: Options, path: str) -> str:
    """Return the requested kind of channels: ``ring`` or ``tree``.

    Raises
    ------
    InputError
        Another algorithm: NCCL plans rings and trees.
    """
    if options.collectives not in ("ring", "tree"):
        raise InputError(f"contains rings and trees, not {options.collectives}", path=path)
    return options.collectives


def links_profile(
    links: Sequence[tuple[int, int]],
    ranks: int,
    source: str,
    file: SourceFile,
    options: Options,
    warnings: Sequence[str],
) -> Parsed:
    """Return a profile of one byte and one message along each link; repeated links are summed."""
    name = stem(file.path)
    ones = [1] * len(links)
    profile = Profile.from_edges(
        [one for one, _ in links],
        [other for _, other in links],
        ones,
        ranks=ranks,
        messages=ones,
        name=options.name or name,
        application=name,
    )
    return Parsed(profiles=(replace(profile, source=source),), warnings=tuple(warnings))
