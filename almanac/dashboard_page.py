"""The script that Streamlit runs: opens the registry of the settings and draws the dashboard."""

from __future__ import annotations

from almanac.settings import Settings, load_settings
from dashboard.app import run
from dashboard.shared.viewer import Access
from mapping.checks.finding import ErrorLimits
from registry.registry import Registry


def connect() -> Registry:
    """Open the registry of the current settings; called again after a connection was lost."""
    return load_settings().open_registry()


def access_of(settings: Settings) -> Access:
    """Return who may see what, by these settings.

    Raises:
        ConfigError: The secret key of the pseudonyms cannot be read or created.
    """
    return Access(
        key=settings.pseudonym_key() if settings.hide_users else None,
        only=settings.only_user,
        operators=frozenset(settings.operators),
    )


def access() -> Access:
    """Return who may see what, by the current settings."""
    return access_of(load_settings())


def limits() -> ErrorLimits:
    """Return the growth of error counters from which ports are reported, by the current settings."""
    return load_settings().error_limits()


if __name__ == "__main__":
    run(connect, access, limits)
