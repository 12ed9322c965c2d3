"""``almanac db verify`` and ``doctor`` if files of the embedded server are damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.database.local.damage import REMEDY
from registry.database.local.server import ensure_server, stop
from tests.almanac.conftest import Almanac

MISSING = "databases/almanac/dictionary.0.65536.v1.dict is missing"


@pytest.fixture
def home(
    offline: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: None
) -> Iterator[Path]:
    """A data folder whose server does not start, as a file is missing."""
    for name in ("ALMANAC_DB", "ALMANAC_DB_USER", "ALMANAC_DB_PASSWORD", "ALMANAC_DB_NAME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    monkeypatch.setenv("ALMANAC_HOME", str(folder))
    ensure_server(folder)
    stop(folder)
    (folder / "graph" / MISSING.split()[0]).unlink()
    yield folder
    stop(folder)


def test_damaged_files_are_findings_and_the_remedy_is_named(home: Path, offline: Almanac) -> None:
    done = offline("db", "verify")
    assert done.code == 4
    assert "dictionary" in done.out
    assert f"--repair cannot repair as files are damaged: {REMEDY}" in " ".join(done.out.split())
    (finding,) = json.loads(offline("db", "verify", "--repair", "--json").out)["findings"]
    assert (finding["problem"], finding["of"], finding["left"]) == ("file", "files of the database", True)
    assert f"{finding['id']} {finding['reason']}" == MISSING
    done = offline("doctor", "--json")
    assert done.code in (1, 3)  # the server may start with a new file
    checks = {one["check"]: one for one in json.loads(done.out)}
    assert checks["files of the database"] == {
        "check": "files of the database",
        "state": "failed",
        "seen": f"{MISSING}: {REMEDY}",
    }
