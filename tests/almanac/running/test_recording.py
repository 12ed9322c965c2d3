"""Recordings: where they are written, and which of them are of no use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from almanac.running.call import Unplaced
from almanac.running.launchers import LAUNCHERS, Launcher
from almanac.running.recording import Recording, new_recording


@pytest.fixture
def counting() -> Launcher:
    return next(launcher for launcher in LAUNCHERS if launcher.recording)


def test_the_variables_name_a_new_folder(counting: Launcher, tmp_path: Path) -> None:
    first, variables = new_recording(counting, tmp_path, "wrf")
    second, _ = new_recording(counting, tmp_path, "wrf")
    assert first.folder != second.folder
    assert first.folder.parent == second.folder.parent == tmp_path / "recordings"
    assert str(first.folder / "rank") in variables.values()
    assert "{" not in "".join(variables.values())


def test_a_launcher_that_counts_nothing_is_named(counting: Launcher, tmp_path: Path) -> None:
    with pytest.raises(Unplaced, match="silent 1 counts no messages by itself"):
        new_recording(replace(counting, name="silent 1", recording={}), tmp_path, "wrf")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(counting: Launcher, tmp_path: Path) -> None:
    (tmp_path / "recordings").write_text("a file")
    with pytest.raises(Unplaced, match=f"{tmp_path / 'recordings'}: File exists"):
        new_recording(counting, tmp_path, "wrf")


def test_failed_and_silent_runs_have_no_profile(tmp_path: Path) -> None:
    recording = Recording(folder=tmp_path / "new", application="wrf")
    recording.folder.mkdir()
    assert recording.useless(0) == "the program's MPI library counted no messages (Open MPI does)"
    (recording.folder / "rank.0.prof").write_text("x")
    assert recording.useless(0) is None
    assert recording.useless(-15) == "the launcher ended with exit code -15"
    recording.delete()
    assert not recording.folder.exists()
