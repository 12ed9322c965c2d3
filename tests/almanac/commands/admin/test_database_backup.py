"""``almanac db backup`` and ``restore``, and the names that they had before."""

from __future__ import annotations

from pathlib import Path

import pytest

from registry.database.driver import Database
from registry.database.schema import mark_loading
from tests.almanac.conftest import Almanac
from tests.support import paths

EARLIER = paths.DATA / "dumps" / "schema-1.dump"


def test_a_registry_is_saved_restored_and_replaced(almanac: Almanac, tmp_path: Path) -> None:
    restored = almanac("db", "restore", EARLIER)
    assert (restored.code, restored.out) == (0, "")
    assert restored.err == f"52 nodes and 97 relationships restored from {EARLIER}\n"
    saved = almanac("db", "backup", tmp_path / "x")
    assert (saved.code, saved.out) == (0, "")
    assert saved.err == f"52 nodes and 97 relationships written to {tmp_path / 'x'}\n"
    refused = almanac("db", "restore", tmp_path / "x")
    assert refused.code == 1
    assert f"is not empty: restore with --replace, which first saves its content to {tmp_path}" in refused.err
    assert almanac("db", "restore", "--replace", tmp_path / "x").code == 0
    assert (tmp_path / "x.previous").read_bytes() == (tmp_path / "x").read_bytes()
    assert [row["cluster"] for row in almanac("cluster", "list", "--json").json] == ["hpc1"]


def test_an_interrupted_restore_is_repeated_by_the_command_that_the_error_names(
    embedded: Almanac, embedded_database: Database
) -> None:
    mark_loading(embedded_database, True)
    for command in (("cluster", "list"), ("db", "backup", "/none/x")):
        refused = embedded(*command)
        assert refused.code == 1
        assert "run almanac db restore again with that file" in refused.err
    assert embedded("db", "restore", EARLIER).code == 0
    assert embedded("cluster", "list").code == 0


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_file_is_refused(embedded: Almanac, tmp_path: Path, damage: str) -> None:
    data = bytearray(EARLIER.read_bytes())
    if damage == "cut":
        del data[-30:]
    else:
        data[len(data) // 2] ^= 1
    (tmp_path / "x").write_bytes(data)
    refused = embedded("db", "restore", tmp_path / "x")
    assert refused.code == 1
    assert f"almanac: {tmp_path / 'x'}" in refused.err
    assert embedded("cluster", "list", "--json").json == []


def test_the_earlier_names_still_work_and_print_a_note(embedded: Almanac, tmp_path: Path) -> None:
    loaded = embedded("db", "load", EARLIER)
    assert (loaded.code, loaded.err.splitlines()[0]) == (
        0,
        f"note: this spelling ends with the next version; write: almanac db restore {EARLIER}",
    )
    dumped = embedded("db", "dump", tmp_path / "x")
    assert (dumped.code, (tmp_path / "x").exists()) == (0, True)
    assert "write: almanac db backup" in dumped.err
    shown = embedded("db", "--help").out
    assert "backup" in shown
    assert "dump" not in shown
    assert "load" not in shown
