"""Limit searches by processor time, so that other programs on the machine do not change results."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

CLOCK = SimpleNamespace(perf_counter=time.process_time, time=time.time)


@contextmanager
def processor_clock() -> Iterator[None]:
    """Count the seconds of all `mapping.deadline.Deadline` in processor time of this process, all threads."""
    with patch("mapping.deadline.time", CLOCK):
        yield
