"""Running the command line in this process, on each server or on none."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from almanac.cli import main
from registry.database.driver import Database
from registry.database.local.server import ServerAddress


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        answer = json.loads(self.err.splitlines()[-1])
        assert set(answer) == {"error", "path", "line", "text", "reason"}
        return dict(answer)


Almanac = Callable[..., Outcome]


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Almanac:
    """The command with a database that nobody serves: for what must not need one."""
    monkeypatch.setenv("ALMANAC_CONFIG", str(_empty_config(tmp_path)))
    monkeypatch.setenv("ALMANAC_DB", "bolt://127.0.0.1:1")

    def run(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def almanac(offline: Almanac, monkeypatch: pytest.MonkeyPatch, server_of: ServerAddress) -> Almanac:
    """The command on each server in turn, empty."""
    _use(server_of, monkeypatch)
    return offline


@pytest.fixture
def embedded(
    offline: Almanac,
    monkeypatch: pytest.MonkeyPatch,
    embedded_server: ServerAddress,
    embedded_database: Database,
) -> Almanac:
    """The command on the embedded server, empty: for what cannot differ between servers."""
    from tests.conftest import empty

    empty(embedded_database)
    _use(embedded_server, monkeypatch)
    return offline


def _use(address: ServerAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMANAC_DB", address.uri)
    monkeypatch.setenv("ALMANAC_DB_USER", address.user)
    monkeypatch.setenv("ALMANAC_DB_PASSWORD", address.password)
    if address.name is None:
        monkeypatch.delenv("ALMANAC_DB_NAME", raising=False)
    else:
        monkeypatch.setenv("ALMANAC_DB_NAME", address.name)


def _empty_config(folder: Path) -> Path:
    path = folder / "config.toml"
    path.write_text("")
    return path
