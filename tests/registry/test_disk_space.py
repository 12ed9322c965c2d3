"""Room on the file system of a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from registry.disk_space import FULL_BYTES, bytes_of, no_space


def test_a_file_system_with_little_room_is_full_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = FULL_BYTES
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr("registry.disk_space.shutil.disk_usage", lambda folder: usage._replace(free=free))
    assert no_space(tmp_path) == ""
    free = 3_999_999
    text = f"no space left on {tmp_path}, 3 MB free: make room, then repeat the command"
    assert no_space(tmp_path) == text
    assert no_space(tmp_path / "not" / "yet" / "there") == text


def test_the_bytes_of_files_in_folders_are_added(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")
    (tmp_path / "c").write_bytes(b"1")
    assert bytes_of([tmp_path]) == 6
    assert bytes_of([tmp_path, tmp_path / "a"]) == 11
    assert bytes_of([tmp_path / "missing"]) == 0


def test_a_file_that_vanishes_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kept").write_bytes(b"123")
    gone = tmp_path / "gone"  # a log that a running server removes while the folder is read
    monkeypatch.setattr(Path, "is_file", lambda path: True)
    monkeypatch.setattr(Path, "rglob", lambda folder, pattern: iter([gone, tmp_path / "kept"]))
    assert bytes_of([tmp_path]) == 3
