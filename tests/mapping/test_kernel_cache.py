"""Compiled kernels are forgotten when any kernel module changes."""

from __future__ import annotations

from pathlib import Path

from mapping.kernels import forget_outdated


def test_a_change_of_one_module_forgets_what_was_compiled_for_all(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b.py").write_text("from a import x\n")
    cache = tmp_path / "__pycache__"
    assert forget_outdated(tmp_path)
    kept = [cache / "b.f-1.py311.nbi", cache / "b.f-1.py311.1.nbc"]
    for path in kept:
        path.write_bytes(b"compiled")
    assert not forget_outdated(tmp_path)
    assert all(path.exists() for path in kept)
    (tmp_path / "a.py").write_text("x = 2\n")
    assert forget_outdated(tmp_path)
    assert not any(path.exists() for path in kept)
    assert not forget_outdated(tmp_path)


def test_a_folder_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "__pycache__").write_text("a file in the cache's place")
    assert not forget_outdated(tmp_path)
