"""The names under which browsers may ask for the pages: a site that lets its name lead here gets nothing."""

from __future__ import annotations

import base64
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

from almanac.allowed_hosts import LOCAL
from almanac.commands.admin.dashboard import server_command
from bench.support.served_dashboard import serve
from registry.database.local.server import stop
from tests.support.waiting import PATIENCE


def upgraded(port: int, host: str, origin: str) -> int:
    """Return the status with which the WebSocket of the pages is answered."""
    lines = (
        *("GET /_stcore/stream HTTP/1.1", f"Host: {host}", f"Origin: {origin}", "Upgrade: websocket"),
        *("Connection: Upgrade", f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}"),
        "Sec-WebSocket-Version: 13\r\n\r\n",
    )
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as one:
        one.sendall("\r\n".join(lines).encode())
        return int(one.recv(100).split()[1])


def test_pages_are_sent_to_pages_of_this_machine_only(tmp_path: Path, processes: None) -> None:
    home = tmp_path / "home"
    try:
        with serve({"ALMANAC_HOME": str(home), "ALMANAC_CONFIG": os.devnull}, tmp_path) as served:
            port = urlsplit(served.url).port or 0
            for host in ("localhost", "127.0.0.1", "[::1]"):
                assert upgraded(port, f"{host}:{port}", f"http://{host}:{port}") == 101
                assert upgraded(port, f"{host}:{port}", "http://evil.example") == 403
            for host in ("evil.example", f"evil.example:{port}", "localhost.evil.example"):
                assert upgraded(port, host, f"http://{host}") == 403
    finally:
        stop(home)


def test_further_names_are_given_to_the_server() -> None:
    words = server_command(8501, hosts=(*LOCAL, "fabric.example"))
    named = [word.partition("=")[2] for word in words if word.startswith("--server.allowedHosts=")]
    assert named == [*LOCAL, "fabric.example"]
