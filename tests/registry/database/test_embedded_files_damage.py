"""Each file of a database is damaged in each way while the server is stopped; the next start notices it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from registry.database.embedded_files import (
    REMEDY,
    ServerFiles,
    damage,
    damage_text,
    note_damage,
    present_damage,
    write_digests,
)
from registry.database.embedded_server import ensure_server, stop
from registry.errors import DatabaseError
from registry.upkeep.backup import section_counts
from registry.upkeep.restore import restore
from registry.upkeep.verify import verify
from tests.support import paths

DUMP = paths.DATA / "dumps" / "schema-5.dump"


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    place = len(data) // 3
    return data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]


WAYS: dict[str, Callable[[bytes], bytes | None]] = {
    "truncated": truncated,
    "emptied": lambda data: b"",
    "deleted": lambda data: None,
    "flipped": flipped,
}


@pytest.fixture(scope="module")
def files(processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerFiles]:
    """Files of a stopped server with data."""
    home = tmp_path_factory.mktemp("damage")
    with ensure_server(home, idle_seconds=300).connect() as database:
        restore(database, DUMP)
    stop(home)
    yield ServerFiles(home)
    stop(home)


@pytest.mark.parametrize("way", WAYS)
def test_each_damaged_file_of_a_database_is_named(files: ServerFiles, way: str) -> None:
    digests = files.digests.read_bytes()
    compared = [files.data / name for name in json.loads(digests)]
    assert len([path for path in compared if path.suffix == ".bucket"]) > 90
    for path in compared:
        whole = path.read_bytes()
        if not whole and way != "deleted":  # an empty bucket has nothing else to damage
            continue
        bad = WAYS[way](whole)
        if bad is None:
            path.unlink()
        else:
            path.write_bytes(bad)
        note_damage(files)
        found = damage(files.home)
        path.write_bytes(whole)
        files.digests.write_bytes(digests)
        files.damage.unlink()
        name = path.relative_to(files.data).as_posix()
        assert any(text.startswith(f"{name} ") for text in found), (name, found)
    note_damage(files)
    assert damage(files.home) == ()
    files.digests.write_bytes(digests)


@pytest.mark.parametrize("way", ["truncated", "deleted"])
def test_without_digests_lengths_and_names_are_compared(files: ServerFiles, way: str) -> None:
    digests = files.digests.read_bytes()
    for pattern in ("Device_0.*.bucket", "LINK_0.*.bucket", "Device_0_*.numtidx", "schema.json"):
        (path,) = (files.data / "databases" / "almanac").glob(pattern)
        whole = path.read_bytes()
        if way == "deleted":
            path.unlink()
        else:
            path.write_bytes(truncated(whole))
        files.digests.unlink(missing_ok=True)
        note_damage(files)
        found = damage(files.home)
        path.write_bytes(whole)
        files.damage.unlink()
        assert len(found) == 1
        assert path.name.split(".")[0] in found[0]
    files.digests.write_bytes(digests)


@pytest.mark.parametrize(
    "pattern", ["Device_0_in_edges.*", "Device_0_out_edges.*", "LINK_0.*", "Content_0.[0-9]*"]
)
def test_lost_records_of_a_server_that_was_killed_are_found_by_reading(
    files: ServerFiles, pattern: str, tmp_path: Path
) -> None:
    copy = ServerFiles(tmp_path)
    shutil.copytree(files.data, copy.data)
    copy.digests.unlink()
    (path,) = copy.data.glob(f"databases/almanac/{pattern}.bucket")
    whole = path.read_bytes()
    path.write_bytes(whole[:2000] + bytes(len(whole) - 2000))
    with ensure_server(tmp_path, idle_seconds=300).connect() as database:
        found = verify(database)
        with pytest.raises(DatabaseError, match=REMEDY):
            section_counts(database)
    stop(tmp_path)
    assert (damage(tmp_path), found.has_damaged_files) == ((), True)


def test_damage_is_noted_until_the_data_are_replaced(tmp_path: Path) -> None:
    files = ServerFiles(tmp_path)
    assert damage_text(tmp_path) == damage_text(None) == ""
    assert present_damage(tmp_path) == ()
    folder = files.data / "databases" / "almanac"
    folder.mkdir(parents=True)
    (folder / "dictionary.0.65536.v1.dict").write_bytes(b"words")
    write_digests(files)
    (folder / "dictionary.0.65536.v1.dict").write_bytes(b"word")
    note_damage(files)
    text = "databases/almanac/dictionary.0.65536.v1.dict has 4 bytes instead of 5"
    assert damage(tmp_path) == (text,)
    assert damage_text(tmp_path) == f"files of the embedded database are damaged: {text}; {REMEDY}"
    write_digests(files)
    note_damage(files)
    assert damage(tmp_path) == (text,)
    for path in (files.digests, files.damage):
        path.write_bytes(b"\xff[")
        note_damage(files)
        assert f"{path.name} cannot be read" in damage(tmp_path)


def test_a_server_that_was_killed_leaves_no_digests(tmp_path: Path) -> None:
    files = ServerFiles(tmp_path)
    folder = files.data / "databases" / "almanac"
    folder.mkdir(parents=True)
    (folder / "database.lck").touch()
    write_digests(files)
    assert not files.digests.exists()
    (folder / "database.lck").unlink()
    write_digests(files)
    assert files.digests.exists()
    note_damage(files)
    assert not files.digests.exists()
