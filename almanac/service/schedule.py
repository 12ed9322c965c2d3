"""When tasks run: at a fixed interval, each with a random delay."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from random import Random
from threading import Event

from almanac.service.configuration import Task


def repeat(
    task: Task,
    work: Callable[[Task], None],
    stop: Event,
    random: Random,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Call `work` at the interval of a task until `stop` is set; the first time at once, plus the delay.

    Starts that pass while `work` runs are left out, so it never runs twice at the same time.

    Parameters
    ----------
    clock : callable
        Seconds that only grow: changes of the system's time have no effect.
    """
    begin, turn = clock(), 0
    while True:
        due = begin + turn * task.interval + random.uniform(0.0, task.jitter)
        if stop.wait(max(0.0, due - clock())):
            return
        work(task)
        turn = max(turn + 1, math.ceil((clock() - begin) / task.interval))
