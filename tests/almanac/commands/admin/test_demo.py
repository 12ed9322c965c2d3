"""The end of what ``almanac demo`` prints: what is made, its age, commands to try next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from almanac.commands.admin import demo
from almanac.demo.fill import CLUSTER
from almanac.demo.generated_data import SOURCE


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
