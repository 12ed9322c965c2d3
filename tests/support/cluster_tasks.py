"""Functions that tests run on the workers of a Dask cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Counted:
    """A value that counts in a file how often it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], Counted], tuple[str]]:
        return arrive, (self.path,)


def arrive(path: str) -> Counted:
    with Path(path).open("a") as log:
        log.write("arrived\n")
    return Counted(path)


def process_of(_: Any) -> int:
    time.sleep(0.3)  # so that other workers get tasks, too
    return os.getpid()


def refuse() -> None:
    raise ZeroDivisionError("refused")


def count_until_stopped(log: str, seconds: float = 60.0) -> int:
    """Return how far this counted: at Ctrl-C, or after some seconds; a line in a file marks start and end."""
    counted, end = 0, time.monotonic() + seconds
    with Path(log).open("a", buffering=1) as lines:
        lines.write(f"started {os.getpid()}\n")
        try:
            while time.monotonic() < end:
                time.sleep(0.01)
                counted += 1
        except KeyboardInterrupt:
            lines.write("stopped\n")
    return counted


def end_worker(log: str) -> None:
    with Path(log).open("a") as lines:
        lines.write("ended\n")
    os._exit(1)
