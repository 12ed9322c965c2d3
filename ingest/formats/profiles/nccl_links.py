"""What the readers of NCCL's rings and trees share: links without bytes as a profile."""

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
    """``ring`` or ``tree``: which channels are asked for.

    Raises
    ------
    InputError
        Another algorithm: NCCL plans rings and trees.
    """
    if options.collectives not in ("ring", "tree"):
        raise InputError(f"tells rings and trees, not {options.collectives}", path=path)
    return options.collectives


def links_profile(
    links: Sequence[tuple[int, int]],
    ranks: int,
    source: str,
    file: SourceFile,
    options: Options,
    warnings: Sequence[str],
) -> Parsed:
    """A profile of one byte and one message along each link; those that stand several times are summed."""
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
    return Parsed(profile=replace(profile, source=source), warnings=tuple(warnings))
