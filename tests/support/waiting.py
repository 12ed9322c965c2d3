"""Waiting for what another process or thread does, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

PATIENCE = 300.0
"""Seconds until a wait is given up, which only ends what hangs.

Whatever a test expects to be killed must run for longer than this by itself."""


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


class SteeredClock:
    """Stands in for the module `time` of a module under test: a pause passes at once.

    Args:
        at_each_pause: Called at each pause, for what is to happen meanwhile.
    """

    def __init__(self, at_each_pause: Callable[[], object] = bool) -> None:
        self.now = 0.0
        self._at_each_pause = at_each_pause

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._at_each_pause()
