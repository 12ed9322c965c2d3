"""Compiled kernels are deleted when any kernel module changes."""

from __future__ import annotations

from pathlib import Path

from mapping.kernels import forget_outdated


def test_a_change_of_one_module_deletes_the_compiled_code_of_all(tmp_path: Path) -> None:
    for package in ("kernels", "routing/kernels"):
        (tmp_path / package / "__pycache__").mkdir(parents=True)
    (tmp_path / "kernels" / "a.py").write_text("x = 1\n")
    (tmp_path / "routing" / "kernels" / "b.py").write_text("from kernels.a import x\n")
    (tmp_path / "routing" / "c.py").write_text("y = 1\n")
    assert forget_outdated(tmp_path)
    cache = tmp_path / "routing" / "kernels" / "__pycache__"
    compiled = [cache / "b.f-1.py311.nbi", cache / "b.f-1.py311.1.nbc"]
    for path in compiled:
        path.write_bytes(b"compiled")
    assert not forget_outdated(tmp_path)
    (tmp_path / "routing" / "c.py").write_text("y = 2\n")
    assert not forget_outdated(tmp_path)
    assert all(path.exists() for path in compiled)
    (tmp_path / "kernels" / "a.py").write_text("x = 2\n")
    assert forget_outdated(tmp_path)
    assert not any(path.exists() for path in compiled)
    assert not forget_outdated(tmp_path)


def test_a_folder_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "a.py").write_text("x = 1\n")
    (tmp_path / "__pycache__").write_text("a file in the cache's place")
    assert not forget_outdated(tmp_path)
