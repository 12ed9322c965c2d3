"""Room on the file system of a folder, and how much of it the files of folders take."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

FULL_BYTES = 10_000_000
"""A file system with less free space is full: the database needs some to finish a transaction."""


def no_space(folder: Path) -> str:
    """Return what is wrong if the file system of a folder is full, else an empty text."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free >= FULL_BYTES:
        return ""
    return f"no space left on {folder}, {free // 1_000_000} MB free: make room, then repeat the command"


def bytes_of(folders: Iterable[Path]) -> int:
    """Return the bytes of all files below some folders; files that vanish meanwhile do not count."""
    total = 0
    for folder in folders:
        for path in folder.rglob("*"):
            with suppress(OSError):
                total += path.stat().st_size if path.is_file() else 0
    return total
