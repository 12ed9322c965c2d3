"""Waiting for what another process or thread does, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

PATIENCE = 60.0
"""Seconds. What a test asks to be ended goes on for longer by itself."""


def comes_true(
    condition: Callable[[], object], seconds: float = PATIENCE, *, unless: Callable[[], object] = bool
) -> bool:
    """Return True as soon as a condition is true; False after some seconds, or if another one is true."""
    end = time.monotonic() + seconds
    while not condition():
        if unless() or time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def has_ended(process: int) -> bool:
    """Return True if a process has ended, also if nobody has asked for its exit code, as in a container."""
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
