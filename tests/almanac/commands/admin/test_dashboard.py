"""``almanac dashboard``: what it refuses before it starts, and that a signal ends it."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from bench.support.served_dashboard import serve
from registry.database.local.server import status, stop
from registry.errors import MissingExtra
from registry.installation import install_command
from tests.almanac.conftest import Almanac
from tests.support.waiting import PATIENCE, comes_true


@pytest.mark.parametrize("module", ["streamlit", "altair", "pandas", "PIL"])
def test_without_its_libraries_the_remedy_is_named(
    module: str, offline: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    refused = offline("dashboard", "--no-browser")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == f"almanac: {MissingExtra(module, install_command('dashboard'))}\n"


def test_the_registry_is_read_before_a_browser_asks_and_a_signal_ends_the_server(
    tmp_path: Path, processes: None
) -> None:
    home = tmp_path / "home"
    try:
        with serve({"ALMANAC_HOME": str(home), "ALMANAC_CONFIG": os.devnull}, tmp_path) as served:
            assert urlopen(f"{served.url}/_stcore/health").status == 200
            assert comes_true(lambda: status(home) is not None), (tmp_path / "streamlit.log").read_text()
    finally:
        stop(home)
    assert "ScriptRunContext" not in (tmp_path / "streamlit.log").read_text()
    with pytest.raises(URLError, match="refused"):
        urlopen(served.url)


def test_the_first_start_of_a_user_serves_without_a_question(tmp_path: Path, processes: None) -> None:
    """On a terminal, where Streamlit would ask for an address of mail."""
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
        env=environment, cwd=tmp_path, stdin=keyboard, stdout=keyboard, stderr=keyboard,
        start_new_session=True,
    )  # fmt: skip
    os.close(keyboard)
    try:
        url = f"http://127.0.0.1:{port}/_stcore/health"
        assert comes_true(lambda: answers(url), unless=lambda: process.poll() is not None)
        shown = os.read(screen, 65536).decode()
        assert f"dashboard: http://127.0.0.1:{port}" in shown
        assert "email" not in shown.lower()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=300)
        os.close(screen)
        stop(tmp_path / "data")
    assert not answers(url)


def answers(url: str) -> bool:
    try:
        return bool(urlopen(url, timeout=PATIENCE).status == 200)
    except OSError:
        return False
