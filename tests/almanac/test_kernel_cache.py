"""Compiled kernels are kept in the data folder if numba finds no other folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from almanac.kernel_cache import VARIABLE, choose_kernel_cache


@pytest.fixture
def writable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Path], None]:
    """A function that allows writing below one folder only."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("ALMANAC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ALMANAC_CONFIG", os.devnull)

    def allow(folder: Path) -> None:
        access = lambda path, mode: Path(path).is_relative_to(folder)  # noqa: E731
        monkeypatch.setattr(os, "access", access)

    return allow


def test_a_writable_program_folder_needs_no_other(writable: Callable[[Path], None]) -> None:
    writable(Path("/"))
    choose_kernel_cache()
    assert VARIABLE not in os.environ


def test_a_read_only_installation_keeps_kernels_in_the_data_folder(
    writable: Callable[[Path], None], tmp_path: Path
) -> None:
    writable(tmp_path)
    choose_kernel_cache()
    assert os.environ[VARIABLE] == str(tmp_path / "home" / "kernels")
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


def test_without_any_folder_kernels_are_kept_for_one_process(
    writable: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writable(tmp_path / "nothing")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    choose_kernel_cache()
    assert Path(os.environ[VARIABLE]).parent == tmp_path
    assert not (tmp_path / "home").exists()


def test_wrong_settings_are_not_its_error(
    writable: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that uses them reports them; `almanac run` starts the job in spite of them."""
    writable(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("ALMANAC_IDLE_SECONDS", "soon")
    choose_kernel_cache()
    assert Path(os.environ[VARIABLE]).parent == tmp_path


def test_a_chosen_folder_is_kept(writable: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch) -> None:
    writable(Path("/nothing"))
    monkeypatch.setenv(VARIABLE, "/chosen")
    choose_kernel_cache()
    assert os.environ[VARIABLE] == "/chosen"
