"""Reading what fabric tools, schedulers and MPI libraries print; `read` returns what is in one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ingest.pipeline import read

__all__ = ["read"]


def __dir__() -> list[str]:
    """Return the names of the public functions."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name != "read":
        raise AttributeError(f"module 'ingest' has no attribute {name!r}")
    from ingest.pipeline import read

    return read
