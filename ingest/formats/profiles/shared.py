"""Functions for all parsers of profiles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from ingest.options import Options
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import Profile

_COMPRESSION = (".gz", ".xz")
_SUFFIXES = (
    *(".csv", ".tar", ".tgz", ".txz", ".txt", ".prof", ".npz", ".npy", ".mtx", ".graph", ".otf2", ".json"),
    *(".toml", ".xml"),
)
MAX_RANKS = 1 << 24
"""Largest number of ranks of a profile, to limit the memory that a wrong rank number can use."""

MAX_PAIR_BYTES = float(1 << 63)
"""Most bytes from one rank to another: larger numbers are damaged, and their sums need not be finite."""

SHOWN = 20
"""Largest number of ranks listed in a message."""


def stem(path: str) -> str:
    """Return the name of a path: ``npb_cg_64`` for ``runs/npb_cg_64.tar.gz``."""
    name = PurePath(path.rpartition("!")[2].rstrip("/")).name
    for suffix in _COMPRESSION:
        name = name.removesuffix(suffix)
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name if name not in ("", "-") else "unnamed"


def place(files: Sequence[SourceFile]) -> str:
    """Return the archive or folder of several files, or the path of a single file."""
    archive = files[0].path.rpartition("!")[0]
    if archive:
        return archive
    return files[0].path if len(files) == 1 else str(PurePath(files[0].path).parent)


def profile_of(
    edges: Iterable[Any],
    ranks: int,
    path: str,
    source: str,
    options: Options,
    *,
    missing: tuple[int, ...] = (),
) -> Profile:
    """Return the profile of a recording.

    Parameters
    ----------
    edges : (int[e], int[e], float[e], int[e] or None)
        Sending rank, receiving rank and bytes of each edge, and its messages if they are known.
    ranks : int
        Number of ranks.
    path : str
        Path of the recording; its name is that of the application, and that of the profile by default.
    source : str
        Format of the recording.
    missing : tuple of int
        Ranks that were not recorded.

    Raises
    ------
    InputError
        More bytes between two ranks than `MAX_PAIR_BYTES`.
    """
    name = stem(path)
    sender, receiver, size, messages = edges
    profile = Profile.from_edges(
        sender,
        receiver,
        size,
        ranks=ranks,
        messages=messages,
        name=options.name or name,
        application=name,
        missing_ranks=missing,
    )
    if profile.pairs and float(profile.bytes.max()) > MAX_PAIR_BYTES:
        pair = int(np.argmax(profile.bytes))
        ends = f"from rank {profile.sender[pair]} to {profile.partner[pair]}"
        raise InputError(f"{profile.bytes[pair]:g} bytes {ends} are more than 2^63", path=path)
    return replace(profile, source=source)


def silent_rank_warnings(profile: Profile, declared: int) -> Iterator[str]:
    """Yield a warning if most ranks have no traffic and the file does not declare their number.

    Then the highest rank is probably a typing error, and the profile needs as many hosts.
    """
    silent = profile.ranks - len(np.union1d(profile.sender, profile.partner))
    if not declared and profile.pairs and 2 * silent > profile.ranks:
        yield (
            f"{silent} of {profile.ranks} ranks neither send nor receive: is rank {profile.ranks - 1} right? "
            f"'# ranks: {profile.ranks}' before the names of the columns declares the number"
        )


def missing_ranks(
    present: Collection[int], ranks: Sequence[int], path: str, options: Options
) -> tuple[int, ...]:
    """Return the ranks that were not recorded; without `Options.allow_missing_ranks` they are an error."""
    missing = tuple(rank for rank in ranks if rank not in present)
    if missing and not options.allow_missing_ranks:
        raise InputError(missing_text(missing, ranks[-1] + 1), path=path)
    return missing


def self_edge_warnings(profile: Profile) -> Iterator[str]:
    """Yield a warning with the number of edges from a rank to itself, which are dropped."""
    if profile.self_edges:
        yield (
            f"{profile.self_edges} edges from a rank to itself are dropped: "
            f"{profile.self_bytes:.0f} bytes that no cable carries"
        )


def missing_text(missing: Sequence[int], ranks: int) -> str:
    """Return a message about missing ranks of a recording, and how to continue without them."""
    shown = ", ".join(str(rank) for rank in missing[:SHOWN]) + (", ..." if len(missing) > SHOWN else "")
    return (
        f"what {len(missing)} of {ranks} ranks sent is missing ({shown}): "
        "--allow-missing-ranks ingests the recording without them"
    )
