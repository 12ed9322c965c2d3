"""The version of this code, as placements record it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def code_version() -> str:
    """Version of the installed distribution; ``unknown`` when run from a plain folder."""
    try:
        return version("fabric-almanac")
    except PackageNotFoundError:
        return "unknown"
