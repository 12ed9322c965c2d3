"""``almanac serve``, ``selfcheck`` and ``demo``: what is refused, and what is printed."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from almanac.commands.admin import demo
from almanac.demo.fill import CLUSTER
from almanac.demo.generated_data import SOURCE
from almanac.service.api import listen
from mapping.selfcheck import waiting_times
from mapping.selfcheck.comparison import Comparison, Subject
from registry.errors import MissingExtra
from registry.installation import install_command
from tests.almanac.conftest import SCAN, TABLES, Almanac


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: Almanac) -> Path:
    """A configuration file that the command reads, with all data in this folder."""
    path = tmp_path / "serve.toml"
    monkeypatch.setenv("ALMANAC_CONFIG", str(path))
    monkeypatch.setenv("ALMANAC_HOME", str(tmp_path / "home"))
    path.write_text("[serve]\n")
    return path


def test_a_configuration_is_checked_without_a_start(config: Path, offline: Almanac) -> None:
    assert offline.ok("serve", "--check").err == f"{config}: 0 tasks; no errors\n"
    config.write_text('[serve]\ncolectors = "x"\n')
    wrong = offline.refused("serve", "--check")
    assert f"{config}: setting serve.colectors: is not a known setting" in wrong


def test_what_prevents_the_start_is_an_error_in_one_line(
    config: Path, offline: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        refused = offline.refused("serve", "--port", port)
    used = f"setting serve.port: 127.0.0.1:{port} cannot be used: Address already in use"
    assert refused == f"almanac: {used}\n"
    token = config.with_name("token")  # which others can read
    token.write_text("0123456789abcdef")
    token.chmod(0o644)
    config.write_text(f'[serve]\ntoken_file = "{token}"\n')
    assert f"run: chmod 600 {token}" in offline.refused("serve")
    monkeypatch.setitem(sys.modules, "fastapi", None)
    missing = MissingExtra("fastapi", install_command("serve"))
    assert offline.refused("serve") == f"almanac: {missing}\n"


QUICK = ("--only", "waiting-times", "--only", "bytes")


def test_a_scan_a_cluster_and_the_sample_scan_are_checked(almanac: Almanac) -> None:
    files = ("--fabric", SCAN, "--fabric", TABLES)
    (check,) = almanac.json("selfcheck", *files, "--only", "paths", "--seconds", "2")["checks"]
    assert (check["check"], check["agrees"], check["differences"]) == ("paths", True, [])
    assert check["compared"] > 10
    almanac.ok("ingest", SCAN, "--cluster", "ft")
    for cluster in (("ft",), ()):
        assert almanac.ok("selfcheck", *cluster, *QUICK).out.count("agrees") == 2


def test_differences_are_printed_and_make_the_command_fail(
    offline: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    def differs(subject: Subject) -> Comparison:
        comparison = Comparison("packets")
        comparison.add("packet 7, seconds", 2.0, 1.0)
        return comparison

    monkeypatch.setattr(waiting_times, "compare", differs)
    outcome = offline("selfcheck", *QUICK)
    assert outcome.code == 4
    assert "1 differ" in outcome.out
    assert "waiting-times: packet 7, seconds: 2, expected 1" in outcome.err
    document: dict[str, Any] = offline("selfcheck", *QUICK, "--json").json
    assert document["checks"][0]["largest_relative_difference"] == 0.5


def test_what_cannot_be_checked_is_an_error(offline: Almanac, tmp_path: Path) -> None:
    assert "none.csv" in offline.refused("selfcheck", "--fabric", tmp_path / "none.csv")
    offline.refused("selfcheck", "ft", "--fabric", SCAN, code=2)
    assert "paths" in offline.refused("selfcheck", "--only", "path")


def program_at(path: Path) -> Path:
    """Write an executable file named ``almanac``."""
    path.mkdir(parents=True)
    program = path / "almanac"
    program.write_text("")
    program.chmod(0o755)
    return program


def test_the_program_is_named_as_it_can_be_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine, other = (program_at(tmp_path / name) for name in ("mine", "other"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["mine/almanac", "demo"])
    for path, expected in ((mine, "almanac"), (other, "mine/almanac"), (tmp_path / "none", "mine/almanac")):
        monkeypatch.setenv("PATH", str(path.parent))
        assert demo.program() == expected
    monkeypatch.setattr("sys.argv", ["-c", "demo"])
    assert demo.program() == "almanac"


@pytest.mark.parametrize(("age", "renew"), [(timedelta(minutes=1), False), (timedelta(days=3), True)])
def test_an_old_demonstration_is_pointed_out(
    age: timedelta, renew: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    moment = datetime.now(UTC) - age
    demo._show_next(moment)
    printed = " ".join(capsys.readouterr().out.split())
    assert f"times are relative to {moment:%Y-%m-%d}" in printed
    assert SOURCE in printed
    assert ("3 days ago; relative to now: almanac demo --renew" in printed) == renew
    for arguments, about in demo.NEXT.items():
        assert f"almanac {arguments} # {about}" in printed


def test_the_commands_to_try_next_name_the_demonstration() -> None:
    clusters = {word for arguments in demo.NEXT for word in arguments.split() if word.startswith("demo-")}
    assert clusters == {CLUSTER}
