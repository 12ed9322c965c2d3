"""``almanac dashboard``: what it refuses before it starts, and that a signal ends it."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from bench.support.served_dashboard import serve
from registry.errors import MissingExtra
from registry.installation import install_command
from tests.almanac.conftest import Almanac


@pytest.mark.parametrize("module", ["streamlit", "altair", "pandas", "PIL"])
def test_without_its_libraries_the_remedy_is_named(
    module: str, offline: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    refused = offline("dashboard", "--no-browser")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == f"almanac: {MissingExtra(module, install_command('dashboard'))}\n"


def test_a_signal_to_the_command_ends_the_server(tmp_path: Path) -> None:
    with serve({"ALMANAC_HOME": str(tmp_path), "ALMANAC_CONFIG": os.devnull}, tmp_path) as served:
        assert urlopen(f"{served.url}/_stcore/health").status == 200
    with pytest.raises(URLError, match="refused"):
        urlopen(served.url)


@pytest.mark.parametrize("terminal", [True, False])
def test_the_first_start_of_a_user_serves_without_a_question(tmp_path: Path, terminal: bool) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path / "home"
    home.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ALMANAC_")}
    environment |= {"HOME": str(home), "ALMANAC_HOME": str(tmp_path / "data"), "BROWSER": "true"}
    screen, keyboard = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from almanac.cli import main; main()", "dashboard", "--port", str(port)],
        env=environment,
        cwd=tmp_path,
        stdin=keyboard if terminal else subprocess.DEVNULL,
        stdout=keyboard,
        stderr=keyboard,
        start_new_session=True,
    )
    os.close(keyboard)
    try:
        assert answers(f"http://127.0.0.1:{port}/_stcore/health", process)
        shown = os.read(screen, 65536).decode()
        assert f"dashboard: http://127.0.0.1:{port}" in shown
        assert "email" not in shown.lower()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
        os.close(screen)
    with pytest.raises(URLError, match="refused"):
        urlopen(f"http://127.0.0.1:{port}/_stcore/health")


def answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the server answers; False if it ends or takes a minute."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return bool(urlopen(url, timeout=5).status == 200)
        except OSError:
            time.sleep(0.2)
    return False
