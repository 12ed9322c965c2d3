"""Let the file system of the data folder run full at a random moment.

The data are on a file system in memory of its own (``mount`` needs root, or a user namespace); a file takes
what is left of it but some kilobytes.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.faults.commands import Case, Outcome, finish, start

SIZE_MEGABYTES = 400


@contextmanager
def small_disk(folder: Path, megabytes: int = SIZE_MEGABYTES) -> Iterator[Path]:
    """Mount a file system of this size on a folder; unmount it at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "almanac", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def filled(
    case: Case, moment: float, left: int, disk: Path, files: Path, variables: Mapping[str, str]
) -> Outcome:
    """Run a command in a folder of the disk, and fill the disk after some seconds; make room at the end.

    Parameters
    ----------
    left : bytes that stay free
    """
    began = time.monotonic()
    process = start(case.words(files, disk), variables, disk)
    while time.monotonic() - began < moment and process.poll() is None:
        time.sleep(0.005)
    filler = disk / "filler"
    with filler.open("wb") as file:
        free = os.statvfs(disk)
        os.posix_fallocate(file.fileno(), 0, max(free.f_bavail * free.f_frsize - left, 1))
    try:
        return finish(process, began)
    finally:
        filler.unlink()
