"""What the readers of profiles share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from registry.model import Profile

_COMPRESSION = (".gz", ".xz")
_SUFFIXES = (".csv", ".tar", ".tgz", ".txz", ".txt", ".prof")
MAX_RANKS = 1 << 24
"""Most ranks of a profile: bounds what one absurd rank number can make a reader allocate."""


def stem(path: str) -> str:
    """``npb_cg_64`` of ``runs/npb_cg_64.tar.gz``, ``edges`` of ``runs.tar!day1/edges.csv``."""
    name = PurePath(path.rpartition("!")[2].rstrip("/")).name
    for suffix in _COMPRESSION:
        name = name.removesuffix(suffix)
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name if name not in ("", "-") else "unnamed"


def self_edge_warnings(profile: Profile) -> Iterator[str]:
    """Says how many edges from a rank to itself were dropped, where there were any."""
    if profile.self_edges:
        yield (
            f"{profile.self_edges} edges from a rank to itself are dropped: "
            f"{profile.self_bytes:.0f} bytes that no cable carries"
        )
