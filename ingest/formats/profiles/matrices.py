"""Profiles from matrices and graphs: matrices of bytes, and patterns that METIS cuts into parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ingest.formats.profiles.shared import MAX_RANKS, place, self_edge_warnings, stem
from ingest.generate.matrices import pattern_traffic
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Profile

MAX_DENSE = 1 << 14
"""Largest number of ranks of a dense matrix: 2 GiB as float64."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entries:
    """Entries of a square matrix.

    Attributes
    ----------
    row, column : int[e]
        Indices from 0. A row is what a rank sends unless `Options.transposed` is set.
    size : float[e]
        Bytes; zero means no message.
    ranks : int
        Number of rows and columns.
    messages : int[e] or None
        Number of messages, if known.
    """

    row: ArrayLike
    column: ArrayLike
    size: ArrayLike
    ranks: int
    messages: ArrayLike | None = None


def matrix_profile(
    files: Sequence[SourceFile],
    options: Options,
    format: str,
    entries: Entries,
    warnings: Sequence[str] = (),
) -> Parsed:
    """Return the profile of a matrix of bytes, or of products with the matrix.

    Raises
    ------
    InputError
        A negative entry, more than `MAX_RANKS` rows, more parts than rows.
    """
    name, ranks, messages = stem(place(files)), entries.ranks, entries.messages
    row, column = np.asarray(entries.row), np.asarray(entries.column)
    if options.parts is not None:
        return _product(files, options, format, row, column, ranks, warnings)
    source, target = (column, row) if options.transposed else (row, column)
    values = np.asarray(entries.size, np.float64)
    if ranks > MAX_RANKS:
        raise InputError(f"has {ranks} ranks, more than {MAX_RANKS}", path=place(files))
    if len(values) and not (bool(np.isfinite(values).all()) and values.min() >= 0):
        reason = "an entry is negative or not finite: it cannot be bytes; is this the matrix of a solver?"
        raise InputError(f"{reason} Use --parts P to cut it into P parts", path=place(files))
    kept = values > 0
    if messages is not None:
        kept |= np.asarray(messages) > 0
    profile = Profile.from_edges(
        source[kept],
        target[kept],
        values[kept],
        ranks=ranks,
        messages=None if messages is None else np.asarray(messages)[kept],
        name=options.name or name,
        application=name,
    )
    notes = (*warnings, *self_edge_warnings(profile))
    return Parsed(profiles=(replace(profile, source=format),), warnings=notes)


def _product(
    files: Sequence[SourceFile],
    options: Options,
    format: str,
    row: np.ndarray,
    column: np.ndarray,
    rows: int,
    warnings: Sequence[str],
) -> Parsed:
    """Return the profile of products with the matrix, cut into parts."""
    parts, name = options.parts or 1, stem(place(files))
    if parts > rows:
        raise InputError(f"cannot be cut into {parts} parts: it has {rows} rows", path=place(files))
    profile = pattern_traffic(row, column, rows, parts, name=options.name or f"{name}-{parts}")
    about = (
        f"entries are not read as bytes: METIS cut the {rows} rows into {parts} parts, and ranks send what a "
        "product with a vector of doubles needs"
    )
    cut = replace(profile, source=f"{format}, cut into parts")
    return Parsed(profiles=(cut,), warnings=(*warnings, about))
