"""Room on the file system of a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from registry.disk_space import FULL_BYTES, no_space


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
