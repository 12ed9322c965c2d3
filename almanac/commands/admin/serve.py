"""``almanac serve``: run collectors, ingest, and serve metrics and JSON over HTTP."""

from __future__ import annotations

import signal

import click

from almanac.allowed_hosts import allowed_hosts
from almanac.commands.admin.dashboard import LOOPBACK
from almanac.options.common import current_settings, current_spool
from almanac.output.printing import note
from registry.installation import require


@click.command("serve")
@click.option("--address", help="Address to listen on (default: 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="TCP port; 0 for any (default: 8600).")
@click.option("--check", is_flag=True, help="Check the configuration and exit.")
def command(address: str | None, port: int | None, check: bool) -> None:
    """Run until SIGTERM or Ctrl-C; the configuration file lists what to run, see docs/how-to/service.md.

    Output of collectors that cannot be saved waits in the spool: see `almanac spool`.
    """
    require("serve", "fastapi", "uvicorn")
    from almanac.service.api import build, listen, server
    from almanac.service.configuration import read_service
    from almanac.service.service import Service

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
