"""``almanac dashboard``: serve the web pages and open them in a browser."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from almanac.allowed_hosts import LOCAL, allowed_hosts
from almanac.options.common import current_settings
from almanac.output.printing import note
from almanac.settings import environment_of
from registry.installation import require

DEFAULT_PORT = 8501
LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Addresses that other machines cannot reach."""


@click.command("dashboard")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=DEFAULT_PORT, show_default=True, help="TCP port."
)
@click.option("--address", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option("--hide-users", is_flag=True, help="Show pseudonyms instead of user names.")
@click.option(
    "--only-user",
    metavar="NAME",
    help="Show only the jobs of this user; login:CLAIM or header:NAME: of the user who is logged in.",
)
def command(port: int, address: str, no_browser: bool, hide_users: bool, only_user: str | None) -> None:
    """Serve the web pages until interrupted with Ctrl-C."""
    require("dashboard", "streamlit", "altair", "pandas", "PIL")
    settings = current_settings(
        dashboard_hide_users="true" if hide_users else None,
        dashboard_only_user=only_user,
    )
    if address not in LOOPBACK:
        note(
            f"warning: other machines can reach {address}, and there is no password: "
            "see docs/how-to/dashboard.md"
        )
    note(f"dashboard: http://{address}:{port}  (Ctrl-C stops it)")
    hosts = allowed_hosts(address, settings.allowed_hosts)
    words = server_command(port, address, headless=no_browser, hosts=hosts)
    # In place of this process, so that signals and the exit code are the server's. The arguments come from
    # this module, and no shell interprets them.
    # Streamlit draws pages in many threads, each of which would get an area of memory that never shrinks.
    environment = {"MALLOC_ARENA_MAX": "2", **environment_of(settings)}
    os.execve(words[0], words, environment)  # noqa: S606


def server_command(
    port: int, address: str = "127.0.0.1", *, headless: bool = True, hosts: Sequence[str] = LOCAL
) -> list[str]:
    """Return the command that serves the pages; it sends no statistics and loads nothing from other hosts.

    Parameters
    ----------
    hosts : sequence of str
        Names of this machine under which the pages may be asked for.
    """
    import almanac.dashboard_page
    import almanac.dashboard_server
    import dashboard

    return [
        sys.executable,
        "-m",
        almanac.dashboard_server.__name__,
        "run",
        str(Path(almanac.dashboard_page.__file__)),
        f"--server.port={port}",
        f"--server.address={address}",
        *(f"--server.allowedHosts={host}" for host in hosts),
        f"--server.headless={'true' if headless else 'false'}",
        "--server.showEmailPrompt=false",
        "--server.fileWatcherType=none",
        "--browser.gatherUsageStats=false",
        "--client.toolbarMode=viewer",
        "--client.showErrorLinks=false",
        f"--theme.base={Path(dashboard.__file__).parent / 'theme.toml'}",
    ]
