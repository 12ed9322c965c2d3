"""What an installation takes on disk: the record keeps the promise, and every file is counted once."""

from __future__ import annotations

import json
from pathlib import Path

from bench.speed.install import RECORD, disk_use

PROMISED_BYTES, PROMISED_SECONDS = 500e6, 0.5


def test_the_recorded_base_is_small_and_starts_quickly() -> None:
    found = json.loads(RECORD.read_text("utf-8"))
    assert 0 < found["sizes"]["base_disk_bytes"] <= PROMISED_BYTES
    assert found["sizes"]["dashboard_disk_bytes"] > found["sizes"]["base_disk_bytes"]
    for part in ("base", "dashboard"):
        assert 0 < max(found["steps"][part].values()) < PROMISED_SECONDS


def test_space_is_counted_as_du_counts_it(tmp_path: Path) -> None:
    for name in ("lib/numpy/a.py", "lib/numpy/__pycache__/a.pyc", "lib/pip/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * 100_000)
    found = disk_use(tmp_path)
    assert 200_000 <= found["disk_bytes"] < 300_000
    assert 100_000 <= found["bytecode_bytes"] < 150_000
    assert 100_000 <= found["empty_venv_bytes"] < 150_000
