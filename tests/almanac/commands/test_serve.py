"""``almanac serve``, ``dashboard``, ``selfcheck`` and ``demo``: what is refused, printed, and who may ask."""

from __future__ import annotations

import base64
import os
import pty
import re
import shlex
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from streamlit.util import calc_hash

from almanac.commands import serve as demo
from almanac.commands.serve import server_command
from almanac.demo.data import SOURCE
from almanac.demo.demo import CLUSTER
from almanac.serve.allowed_hosts import LOCAL
from almanac.serve.api import listen
from almanac.settings import load_settings
from bench.support.served_dashboard import serve
from dashboard.app import PAGES
from mapping.selfcheck import checks
from mapping.selfcheck.oracles import Comparison, Subject
from registry.database.embedded_server import status, stop
from registry.errors import MissingExtra
from registry.installation import install_command
from registry.registry import Registry
from tests.almanac.conftest import SCAN, TABLES, Almanac
from tests.support.apps import app_of
from tests.support.launchers import executable
from tests.support.paths import DATA
from tests.support.waiting import PATIENCE, comes_true


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: Almanac) -> Path:
    """A configuration file that the command reads, with all data in this folder."""
    path = tmp_path / "serve.toml"
    monkeypatch.setenv("ALMANAC_CONFIG", str(path))
    monkeypatch.setenv("ALMANAC_HOME", str(tmp_path / "home"))
    path.write_text("[serve]\n")
    return path


def test_what_prevents_the_start_is_an_error_in_one_line(
    config: Path, offline: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offline.ok("serve", "--check").err == f"{config}: 0 tasks; no errors\n"
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        refused = offline.refused("serve", "--port", port)
    used = f"setting serve.port: 127.0.0.1:{port} cannot be used: Address already in use"
    assert refused == f"almanac: {used}\n"
    with monkeypatch.context() as only:
        only.setitem(sys.modules, "fastapi", None)
        missing = MissingExtra("fastapi", install_command("serve"))
        assert offline.refused("serve") == f"almanac: {missing}\n"
    config.write_text('[serve]\ncolectors = "x"\n')
    wrong = offline.refused("serve", "--check")
    assert f"{config}: setting serve.colectors: is not a known setting" in wrong


QUICK = ("--only", "waiting-times", "--only", "bytes")


def test_a_scan_a_cluster_and_the_sample_scan_are_checked(almanac: Almanac) -> None:
    files = ("--fabric", SCAN, "--fabric", TABLES)
    (check,) = almanac.json("selfcheck", *files, "--only", "paths", "--seconds", "2")["checks"]
    assert (check["check"], check["agrees"], check["differences"]) == ("paths", True, [])
    assert check["compared"] > 10
    almanac.ok("ingest", SCAN, "--cluster", "ft")
    for cluster in (("ft",), ()):
        assert almanac.ok("selfcheck", *cluster, *QUICK).out.count("agrees") == 2


def test_differences_exit_with_4_and_what_cannot_be_checked_is_an_error(
    offline: Almanac, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def differs(subject: Subject) -> Comparison:
        comparison = Comparison("packets")
        comparison.add("packet 7, seconds", 2.0, 1.0)
        return comparison

    monkeypatch.setattr(checks, "compare_waiting_times", differs)
    outcome = offline("selfcheck", *QUICK)
    assert outcome.code == 4
    assert "1 differ" in outcome.out
    assert "waiting-times: packet 7, seconds: 2, expected 1" in outcome.err
    document: dict[str, Any] = offline("selfcheck", *QUICK, "--json").json
    assert document["checks"][0]["largest_relative_difference"] == 0.5
    assert "none.csv" in offline.refused("selfcheck", "--fabric", tmp_path / "none.csv")
    offline.refused("selfcheck", "ft", "--fabric", SCAN, code=2)
    assert "paths" in offline.refused("selfcheck", "--only", "path")


def test_the_program_is_named_as_it_can_be_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("mine", "other"):
        (tmp_path / name).mkdir()
    mine, other = (executable(tmp_path / name / "almanac", "") for name in ("mine", "other"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["mine/almanac", "demo"])
    for path, expected in ((mine, "almanac"), (other, "mine/almanac"), (tmp_path / "none", "mine/almanac")):
        monkeypatch.setenv("PATH", str(path.parent))
        assert demo.program() == expected
    monkeypatch.setattr("sys.argv", ["-c", "demo"])
    assert demo.program() == "almanac"


def test_an_old_demonstration_is_pointed_out(capsys: pytest.CaptureFixture[str]) -> None:
    for age, renew in ((timedelta(minutes=1), False), (timedelta(days=3), True)):
        moment = datetime.now(UTC) - age
        demo._show_next(moment)
        printed = " ".join(capsys.readouterr().out.split())
        assert f"times are relative to {moment:%Y-%m-%d}" in printed
        assert SOURCE in printed
        assert ("3 days ago; relative to now: almanac demo --renew" in printed) == renew
        for arguments, about in demo.NEXT.items():
            assert f"almanac {arguments} # {about}" in printed
    clusters = {word for arguments in demo.NEXT for word in arguments.split() if word.startswith("demo-")}
    assert clusters == {CLUSTER}


def test_without_its_libraries_the_remedy_is_named(offline: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("streamlit", "altair", "pandas", "PIL"):
        with monkeypatch.context() as only:
            only.setitem(sys.modules, module, None)
            refused = offline("dashboard", "--no-browser")
        assert (refused.code, refused.out) == (1, "")
        assert refused.err == f"almanac: {MissingExtra(module, install_command('dashboard'))}\n"


def test_the_registry_is_read_before_a_browser_asks_till_a_signal(tmp_path: Path, processes: None) -> None:
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


TREE = DATA / "infiniband" / "fattree2-64-traffic"
DEMO = "almanac demo"
INSTEAD = {
    "SCAN": str(TREE / "ibnetdiscover.txt"),
    "SLURM_RECORD": str(DATA / "slurm" / "scontrol_show_jobs_d.txt"),
    "NAME": "ft",
    "PROFILE": "cg",
    "HOSTLIST": "node[0001-0008]",
    "JOB": "1",
}
PRINTED = {"scontrol show jobs -d": str(DATA / "slurm" / "scontrol_show_jobs_d.txt")}
"""Files that hold what other programs print, for commands that read it from a pipe."""


def script(connect: object) -> None:
    from typing import Any, cast

    from dashboard.app import run

    run(cast(Any, connect))


def shown_commands() -> set[str]:
    def connect() -> Registry:
        return load_settings().open_registry()

    found: set[str] = set()
    for number, entry in enumerate(PAGES):
        app = app_of(script, connect)
        app._page_hash = calc_hash(entry.title.lower().replace(" ", "-") if number else "")
        app.run()
        assert not app.exception, app.exception
        commands = {code.value for code in app.code}
        assert DEMO in commands, entry.title
        found |= commands
    return found


def test_the_commands_on_pages_of_an_empty_registry_work(almanac: Almanac) -> None:
    commands = shown_commands()
    assert len(commands) > 2
    almanac.ok("ingest", DATA / "openmpi" / "npb_cg_S_16.tar.gz", "--name", "cg")
    # what reads a fabric, and then jobs, comes before what needs them
    for command in sorted(
        commands - {DEMO}, key=lambda text: ("SCAN" not in text, "scontrol" not in text, text)
    ):
        printer, _, piped = command.rpartition(" | ")
        words = [INSTEAD.get(word, word) for word in shlex.split(piped)]
        if printer:
            words[words.index("-")] = PRINTED[printer]
        assert words[0] == "almanac"
        assert not [word for word in words if re.fullmatch(r"[A-Z_]{3,}", word)], command
        slots = ["--slots", "2", "--steps", "100"] if words[1] == "map" else []
        outcome = almanac(*words[1:], *slots)
        assert outcome.code == 0, (command, outcome.err)


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
                for other in ("evil.example", f"{host}:{port + 1}", host, "localhost:1", f"{host}.x:{port}"):
                    assert upgraded(port, f"{host}:{port}", f"http://{other}") == 403
            for host in ("evil.example", f"evil.example:{port}", "localhost.evil.example"):
                assert upgraded(port, host, f"http://{host}") == 403
    finally:
        stop(home)


def test_further_names_are_given_to_the_server() -> None:
    words = server_command(8501, hosts=(*LOCAL, "fabric.example"))
    named = [word.partition("=")[2] for word in words if word.startswith("--server.allowedHosts=")]
    assert named == [*LOCAL, "fabric.example"]
