"""What the readers of profiles share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from ingest.reading.source import SourceFile
from registry.model import Profile

_COMPRESSION = (".gz", ".xz")
_SUFFIXES = (
    *(".csv", ".tar", ".tgz", ".txz", ".txt", ".prof", ".npz", ".npy", ".mtx", ".graph", ".otf2", ".json"),
    *(".toml", ".xml"),
)
MAX_RANKS = 1 << 24
"""Most ranks of a profile: bounds what one absurd rank number can make a reader allocate."""

SHOWN = 20
"""Most ranks that a message lists."""


def stem(path: str) -> str:
    """``npb_cg_64`` of ``runs/npb_cg_64.tar.gz``, ``edges`` of ``runs.tar!day1/edges.csv``."""
    name = PurePath(path.rpartition("!")[2].rstrip("/")).name
    for suffix in _COMPRESSION:
        name = name.removesuffix(suffix)
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name if name not in ("", "-") else "unnamed"


def place(files: Sequence[SourceFile]) -> str:
    """The archive or folder of several files, the file itself where there is one."""
    archive = files[0].path.rpartition("!")[0]
    if archive:
        return archive
    return files[0].path if len(files) == 1 else str(PurePath(files[0].path).parent)


def self_edge_warnings(profile: Profile) -> Iterator[str]:
    """Says how many edges from a rank to itself were dropped, where there were any."""
    if profile.self_edges:
        yield (
            f"{profile.self_edges} edges from a rank to itself are dropped: "
            f"{profile.self_bytes:.0f} bytes that no cable carries"
        )


def missing_text(missing: Sequence[int], ranks: int) -> str:
    """Which ranks' parts of a recording are missing, and how to go on without them."""
    shown = ", ".join(str(rank) for rank in missing[:SHOWN]) + (", ..." if len(missing) > SHOWN else "")
    return (
        f"what {len(missing)} of {ranks} ranks sent is missing ({shown}): "
        "--allow-missing-ranks takes the others without them"
    )
