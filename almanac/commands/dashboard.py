"""``almanac dashboard``: open the pages in a browser."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from almanac.output import note
from almanac.settings import Settings, load_settings

DEFAULT_PORT = 8501


@click.command("dashboard")
@click.option("--port", type=click.IntRange(1, 65535), default=DEFAULT_PORT, show_default=True)
@click.option("--address", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
def command(port: int, address: str, no_browser: bool) -> None:
    """Serve the pages until interrupted."""
    import almanac.dashboard_page

    settings = load_settings(click.get_current_context().find_root().obj)
    if address != "127.0.0.1":
        note(f"warning: the pages are served on {address} without a password")
    arguments = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(Path(almanac.dashboard_page.__file__)),
        f"--server.port={port}",
        f"--server.address={address}",
        f"--server.headless={'true' if no_browser else 'false'}",
        "--server.fileWatcherType=none",
        "--browser.gatherUsageStats=false",
        "--client.toolbarMode=viewer",
        "--theme.primaryColor=#0b6e8f",
    ]
    note(f"dashboard: http://{address}:{port}  (Ctrl-C ends it)")
    # The arguments are ours and no shell reads them.
    process = subprocess.Popen(arguments, env=_environment(settings))  # noqa: S603
    try:
        code = process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        code = 0
    click.get_current_context().exit(1 if code else 0)


def _environment(settings: Settings) -> dict[str, str]:
    """The settings in force, so that the pages read the same registry as this command would."""
    given = {
        "ALMANAC_DB": settings.db or "embedded",
        "ALMANAC_DB_USER": settings.user,
        "ALMANAC_DB_PASSWORD": settings.password,
        "ALMANAC_DB_NAME": settings.name,
        "ALMANAC_HOME": str(settings.home),
        "ALMANAC_IDLE_SECONDS": str(settings.idle_seconds),
    }
    return {**os.environ, **{key: value for key, value in given.items() if value is not None}}
