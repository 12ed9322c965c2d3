"""``almanac serve``: run collectors, ingest, and serve metrics and JSON over HTTP.

``almanac dashboard``: serve the web pages and open them in a browser.

``almanac demo``: run every step once on the sample data that is included.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from almanac.options import current_settings, current_spool, open_registry
from almanac.output.circuits import circuit_plan_to_json, show_circuit_moves
from almanac.output.placements import show_placement, show_simulation_table
from almanac.output.printing import note, progress_bars, say, write_text
from almanac.serve.allowed_hosts import LOCAL, allowed_hosts
from almanac.settings import environment_of
from registry import units
from registry.installation import require
from registry.store.ingest_runs import age_text

if TYPE_CHECKING:
    from almanac.demo.demo import DemoResult
    from registry.model import Fabric


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
def dashboard(port: int, address: str, no_browser: bool, hide_users: bool, only_user: str | None) -> None:
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

    Args:
        hosts: Names of this machine under which the pages may be asked for.
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


@click.command("serve")
@click.option("--address", help="Address to listen on (default: 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="TCP port; 0 for any (default: 8600).")
@click.option("--check", is_flag=True, help="Check the configuration and exit.")
def command(address: str | None, port: int | None, check: bool) -> None:
    """Run until SIGTERM or Ctrl-C; the configuration file lists what to run, see docs/how-to/service.md.

    Output of collectors that cannot be saved waits in the spool: see `almanac spool`.
    """
    require("serve", "fastapi", "uvicorn")
    from almanac.serve.api import build, listen, server
    from almanac.serve.configuration import read_service
    from almanac.serve.service import Service

    settings = current_settings()
    configured = read_service(settings, address=address, port=port)
    spool = current_spool()
    if check:
        note(f"{settings.config_path}: {len(configured.tasks)} tasks; no errors")
        return
    if configured.address not in LOOPBACK:
        note(f"warning: other machines can reach {configured.address}, and the token is sent unencrypted")
    listener = listen(configured.address, configured.port)
    service = Service(settings, configured.tasks, spool, note)
    with listener:
        service.start()
        try:
            for number in (signal.SIGTERM, signal.SIGINT):  # which `run` sends again when it ends
                signal.signal(number, lambda *_: None)
            name, number = listener.getsockname()[:2]
            note(f"serving on http://{name}:{number}; token in {configured.token_file}")
            hosts = allowed_hosts(configured.address, settings.allowed_hosts)
            server(build(service, configured.token, hosts)).run([listener])
        finally:
            service.stop()
    note("stopped")


RANKFILE = "openmpi-rankfile"
RECENT = timedelta(hours=1)
"""A demonstration older than this is pointed out."""
NEXT = {
    "today demo-ndr": "what changed, what is broken, which jobs slow each other down",
    "history regressions": "the nightly job that got slower, and what had changed before",
    "congestion demo-ndr": "the busiest links now, and the jobs that share them",
    "advise jobs demo-ndr": "search better placements of the running jobs: about 15 seconds",
}
"""Commands to try next, and what they show."""


@click.command("demo")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    default="demo.rankfile",
    show_default=True,
    help="File for the rankfile.",
)
@click.option(
    "--renew",
    is_flag=True,
    help="Delete the clusters demo-ndr and demo-optical first, so that all times are relative to now.",
)
def demo(output: str, renew: bool) -> None:
    """Load a real fabric with its routes, a real profile and made jobs; place a job's ranks; save everything.

    The placement is simulated and compared with ranks in order and at random. For a small generated cluster
    with an optical switch the next circuits are planned. All times are relative to the first run. A second
    run shows the same results and adds nothing; --renew makes the demonstration again.
    """
    from almanac.demo.demo import CLUSTER, delete_demonstration, fill
    from almanac.precompile import precompiled_kernels
    from mapping.launchers import launch_line, write

    with open_registry() as registry, progress_bars() as progress, precompiled_kernels(progress) as wait:
        if renew:
            delete_demonstration(registry)
        result = fill(registry, progress, before_runs=wait)
        fabric = registry.fabrics.read(CLUSTER).fabric
    write_text(output, write(RANKFILE, result.placed.placement, result.placed.fabric))
    _show(result, fabric)
    say(f"launch: {launch_line(RANKFILE, result.placed.placement, result.placed.fabric, output)}")
    _show_next(result.moment)
    if not result.complete:
        click.get_current_context().exit(130)


def _show_next(moment: datetime) -> None:
    """Print what is made, to which time all times are relative, and commands to try next."""
    from almanac.demo.data import SOURCE

    say(
        "real: the wiring of demo-ndr, its tables by opensm, the profile of HPCG; made: all times, jobs, "
        "measured runs, earlier wirings and the plan, counters, other profiles, demo-optical (source: "
        f"{SOURCE})"
    )
    age = datetime.now(UTC) - moment
    old = f", {age_text(age)} ago; relative to now: {program()} demo --renew" if age > RECENT else ""
    say(f"times are relative to {units.moment_text(moment)}{old}")
    click.echo("try next:")
    wide = max(map(len, NEXT))
    for arguments, about in NEXT.items():
        click.echo(f"  {program()} {arguments:{wide}}   # {about}")
    note(f"web pages: make dashboard     (without a checkout: {program()} dashboard)")


def program() -> str:
    """Return how this program is started from the present folder: ``almanac`` if it is on the path."""
    started, found = Path(sys.argv[0]), shutil.which("almanac")
    if started.name != "almanac" or (found is not None and started.samefile(found)):
        return "almanac"
    return str(started)


def _show(result: DemoResult, fabric: Fabric) -> None:
    """Print the fabric, the placement, its simulation and the circuits to move."""
    from almanac.demo.demo import OPTICAL

    say(
        f"fabric {result.placed.case.cluster}: {len(fabric.hosts)} hosts with {len(fabric.adapters)} "
        f"adapters, {len(fabric.switches)} switches, {fabric.cable_count} cables (a real NDR fabric)"
    )
    show_placement(result.placed)
    click.echo("")
    show_simulation_table(result.simulated)
    click.echo("")
    case = result.planned.case
    say(
        f"{OPTICAL}: {len(case.hosts)} generated hosts on an optical switch, {len(case.profiles)} generated "
        "jobs; circuits to move:"
    )
    show_circuit_moves(circuit_plan_to_json(result.planned)["present"])
