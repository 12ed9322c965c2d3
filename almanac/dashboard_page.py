"""The script that Streamlit runs: opens the registry that the settings name and hands it to the pages."""

from __future__ import annotations

from almanac.settings import Settings, load_settings
from dashboard.app import run
from dashboard.state.viewer import Access
from registry.registry import Registry


def connect() -> Registry:
    """The registry of the settings in force; called again where a connection was lost."""
    return load_settings().open_registry()


def access_of(settings: Settings) -> Access:
    """Who may see what of users.

    Raises
    ------
    ConfigError
        The secret of pseudonyms cannot be read or made.
    """
    return Access(
        key=settings.pseudonym_key() if settings.hide_users else None,
        only=settings.only_user,
        operators=frozenset(settings.operators),
    )


def access() -> Access:
    """Of the settings in force."""
    return access_of(load_settings())


if __name__ == "__main__":
    run(connect, access)
