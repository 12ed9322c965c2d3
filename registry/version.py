"""Version of this program, which every record stores."""

from __future__ import annotations


def code_version() -> str:
    """Return the version of the installed distribution, or ``unknown`` if none is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("fabric-almanac")
    except PackageNotFoundError:
        return "unknown"
