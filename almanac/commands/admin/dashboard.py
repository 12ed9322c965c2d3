"""``almanac dashboard``: open the pages in a browser."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from almanac.output.printing import note
from almanac.settings import Settings, load_settings

DEFAULT_PORT = 8501
LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Addresses that no other machine reaches."""


@click.command("dashboard")
@click.option("--port", type=click.IntRange(1, 65535), default=DEFAULT_PORT, show_default=True)
@click.option("--address", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option("--hide-users", is_flag=True, help="Show pseudonyms instead of user names.")
@click.option(
    "--only-user", metavar="NAME", help="Show the jobs of this user only; or login:CLAIM, header:NAME."
)
def command(port: int, address: str, no_browser: bool, hide_users: bool, only_user: str | None) -> None:
    """Serve the pages until interrupted."""
    settings = load_settings(
        click.get_current_context().find_root().obj,
        dashboard_hide_users="true" if hide_users else None,
        dashboard_only_user=only_user,
    )
    if address not in LOOPBACK:
        note(f"warning: the pages are served on {address} without a password: see docs/dashboard.md")
    note(f"dashboard: http://{address}:{port}  (Ctrl-C ends it)")
    # The arguments are ours and no shell reads them.
    process = subprocess.Popen(  # noqa: S603
        served(port, address, headless=no_browser), env=environment_of(settings)
    )
    try:
        code = process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        code = 0
    click.get_current_context().exit(1 if code else 0)


def served(port: int, address: str = "127.0.0.1", *, headless: bool = True) -> list[str]:
    """The command line of the server: no statistics are sent, nothing of another host is asked for."""
    import almanac.dashboard_page

    return [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(Path(almanac.dashboard_page.__file__)),
        f"--server.port={port}",
        f"--server.address={address}",
        f"--server.headless={'true' if headless else 'false'}",
        "--server.fileWatcherType=none",
        "--browser.gatherUsageStats=false",
        "--client.toolbarMode=viewer",
        "--client.showErrorLinks=false",
        # one for each, as a single one makes the pages light in a browser that asks for dark ones
        "--theme.light.primaryColor=#0b6e8f",
        "--theme.dark.primaryColor=#4cc3ea",
    ]


def environment_of(settings: Settings) -> dict[str, str]:
    """The settings in force, so that the pages read the same registry as this command would."""
    given = {
        "ALMANAC_DB": settings.db or "embedded",
        "ALMANAC_DB_USER": settings.user,
        "ALMANAC_DB_PASSWORD": settings.password,
        "ALMANAC_DB_NAME": settings.name,
        "ALMANAC_HOME": str(settings.home),
        "ALMANAC_IDLE_SECONDS": str(settings.idle_seconds),
        "ALMANAC_DASHBOARD_HIDE_USERS": str(settings.hide_users).lower(),
        "ALMANAC_DASHBOARD_ONLY_USER": settings.only_user,
        "ALMANAC_DASHBOARD_OPERATORS": ",".join(settings.operators),
        "ALMANAC_DASHBOARD_SECRET": settings.secret,
    }
    return {**os.environ, **{key: value for key, value in given.items() if value is not None}}
