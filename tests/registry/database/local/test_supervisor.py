"""The supervisor of the local server, without its own process."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from registry.database.driver import Database
from registry.database.local import supervisor
from registry.database.local.files import ServerFiles, ServerState, machine_name
from registry.database.local.server import ensure_server, stop


def test_a_taken_port_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ArcadeDB stays alive without its HTTP port; such a server is not used."""
    files = ServerFiles(tmp_path / "data folder")
    ensure_server(files.home)  # creates the database
    stop(files.home)
    free = supervisor._free_ports
    with socket.create_server(("127.0.0.1", 0)) as taken:
        offers = [[free(1)[0], taken.getsockname()[1]], free(2)]
        monkeypatch.setattr(supervisor, "_free_ports", lambda count: offers.pop(0))
        begun = ServerState(supervisor=os.getpid(), machine=machine_name(), started_at=0.0, idle_seconds=60.0)
        java, state = supervisor._start(files, begun)
        try:
            assert offers == []
            Database.connect(
                f"bolt://127.0.0.1:{state.bolt_port}", user="root", password=files.read_password()
            ).close()
        finally:
            supervisor._stop(java)
            files.state.unlink()


def test_java_listens_on_loopback_with_our_folder_and_ports() -> None:
    files = ServerFiles(Path('/a "b"'))
    lines = supervisor._java_arguments(files, 1234, 1235).splitlines()
    assert lines[-1] == '"com.arcadedb.server.ArcadeDBServer"'
    assert '"-Darcadedb.bolt.host=127.0.0.1"' in lines
    assert '"-Darcadedb.bolt.port=1234"' in lines
    assert '"-Darcadedb.server.httpIncomingPort=1235"' in lines
    assert '"-Darcadedb.server.rootPath=/a \\"b\\"/graph"' in lines
