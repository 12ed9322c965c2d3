"""Let limits of searches count processor time, so that they do not depend on what else a machine does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

import mapping.deadline


@contextmanager
def limits_in_processor_time() -> Iterator[None]:
    """Let seconds of every `Deadline` made and used in the block be processor seconds of this process.

    Give searches one worker: a second of two threads would count twice.
    """
    clock = SimpleNamespace(perf_counter=time.process_time, time=time.time)
    with patch.object(mapping.deadline, "time", clock):
        yield
