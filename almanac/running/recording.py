"""What the MPI library counts during a run: where it writes that, and its profile in the registry."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from almanac.running.call import Unplaced
from almanac.running.launchers import Launcher

if TYPE_CHECKING:
    from registry.registry import Registry

FOLDER = "recordings"
"""Folder of recordings within the program's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recording under way.

    Attributes
    ----------
    folder : Path
        Where the MPI library writes what each rank sent; it must be there on all hosts.
    application : str
        Name of the profile.
    """

    folder: Path
    application: str

    @property
    def has_counts(self) -> bool:
        """True if a rank has written what it sent."""
        return any(self.folder.iterdir())

    def useless(self, exit_code: int) -> str | None:
        """Return why a run that has ended has no profile, or None if it has one."""
        if exit_code != 0:
            return f"the launcher ended with exit code {exit_code}"
        if not self.has_counts:
            return "the program's MPI library counted no messages (Open MPI does)"
        return None

    def delete(self) -> None:
        """Delete what was written."""
        shutil.rmtree(self.folder, ignore_errors=True)


def new_recording(launcher: Launcher, home: Path, application: str) -> tuple[Recording, Mapping[str, str]]:
    """Return a new recording, and the variables with which the launcher's MPI library writes it.

    Raises
    ------
    Unplaced
        It counts no messages, or there is no place for them.
    """
    if not launcher.recording:
        raise Unplaced(f"{launcher.name} counts no messages by itself")
    folder = home / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = Path(tempfile.mkdtemp(dir=folder))
    except OSError as error:
        raise Unplaced(f"{folder}: {error.strerror}") from error
    variables = {name: value.format(file=path / "rank") for name, value in launcher.recording.items()}
    return Recording(folder=path, application=application), variables


def save_recording(registry: Registry, recording: Recording) -> str:
    """Save a recording as the newest profile of its application; return the id of the profile.

    Raises
    ------
    AlmanacError
        It cannot be read or saved.
    """
    from ingest.options import Options
    from ingest.pipeline import plan

    intake = plan([str(recording.folder)], Options(name=recording.application))
    profiles = tuple(replace(one, application=recording.application) for one in intake.profiles)
    registry.save(replace(intake, profiles=profiles))
    return registry.profiles.read(recording.application).id
