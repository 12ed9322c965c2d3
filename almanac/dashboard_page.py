"""The script that Streamlit runs: opens the registry that the settings name and hands it to the pages."""

from __future__ import annotations

from almanac.settings import load_settings
from dashboard.app import run
from registry.registry import Registry


def connect() -> Registry:
    """The registry of the settings in force; called again where a connection was lost."""
    return load_settings().open_registry()


if __name__ == "__main__":
    run(connect)
