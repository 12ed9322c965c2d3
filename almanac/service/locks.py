"""Locks between processes, on files; the kernel releases them when the last holder ends, even if killed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[int | None]:
    """Hold a lock during the block; yield its descriptor, or None if another process holds it.

    A process that inherits the descriptor holds the lock too, until it ends or the block ends.

    Parameters
    ----------
    wait : bool
        True to wait until the lock is free.
    """
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield None
            return
        try:
            yield number
        finally:
            fcntl.flock(number, fcntl.LOCK_UN)
    finally:
        os.close(number)
