"""When a search ends: after some seconds, after some steps, when it is stopped, or at Ctrl-C.

Independent pieces of work in threads on all cores; kernels release Python's lock and run in parallel.

Pieces do not depend on the machine, and results are returned in order, so that they do not depend on the
number of cores.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from numbers import Real
from typing import Any, TypeVar

from registry.errors import InvalidValue
from registry.model.views import whole_number

ROUNDS = 100
"""Least number of rounds that a limit in steps is divided into, so that a schedule has enough points."""
LONGEST = 1.0
"""Most seconds between two looks at the clock, if steps take as long as the last ones."""
FIRST = 1_024
"""Most steps before the first look at the clock."""
TICK = 1e-6
"""Least seconds that steps take."""


class Deadline:
    """Limit of a search, its clock, and the rule for interrupts.

    The clock starts when the object is made. With a limit in steps the clock is ignored, so that rounds,
    schedules and results do not depend on it. A deadline without any limit never ends.

    Interrupts: a search runs inside ``with deadline.interruptible():`` and keeps its best result outside
    that block. Ctrl-C ends the block, `interrupted` becomes True, and the search returns the best so far.

    Args:
        seconds: Wall seconds.
        steps: Proposals; if given, `seconds` is ignored.
        workers: Threads that the search may use. Work is divided into as many parts on every machine, so that
            results under a limit in steps do not depend on the number of processors.
        stop: Called before each claim; if it returns True, the search ends.

    Attributes:
        begin: Start of the clock, as of ``time.perf_counter()``.
        taken: Steps claimed so far.
        last_claim: Steps claimed last, and when, as of ``time.perf_counter()``.
        interrupted: True after Ctrl-C inside `interruptible`.
    """

    __slots__ = ("begin", "interrupted", "last_claim", "seconds", "steps", "stop", "taken", "workers")

    def __init__(
        self,
        *,
        seconds: float | None = None,
        steps: int | None = None,
        workers: int = 1,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        self.begin = time.perf_counter()
        self.seconds = seconds
        self.steps = steps
        self.workers = workers
        self.stop = stop
        self.taken = 0
        self.last_claim = 0, self.begin
        self.interrupted = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields with the clock as elapsed time, which other processes can read."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "begin": self.elapsed, "pickled": time.time()}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        """Continue the clock in this process, counting the time since the object was pickled."""
        # clocks may be set, or differ between machines
        elapsed = fields["begin"] + max(0.0, time.time() - fields.pop("pickled"))
        begin = time.perf_counter() - elapsed
        for name, value in {**fields, "begin": begin, "last_claim": (0, begin)}.items():
            setattr(self, name, value)

    @property
    def elapsed(self) -> float:
        """Seconds since the clock was started."""
        return time.perf_counter() - self.begin

    @property
    def left(self) -> float:
        """Seconds until the end, possibly below zero; infinite if the limit is not in seconds."""
        if self.seconds is None or self.steps is not None:
            return math.inf
        return self.seconds - self.elapsed

    @property
    def stopped(self) -> bool:
        """True after an interrupt, or if `stop` returns True."""
        return self.interrupted or (self.stop is not None and self.stop())

    @property
    def fraction(self) -> float:
        """Part of the limit that is used up, 0 to 1."""
        if self.stopped:
            return 1.0
        if self.steps is not None:
            return min(self.taken / self.steps, 1.0) if self.steps > 0 else 1.0
        if self.seconds is None:
            return 0.0
        elapsed = self.elapsed
        return min(elapsed / self.seconds, 1.0) if elapsed < self.seconds else 1.0

    @property
    def over(self) -> bool:
        """True if the search must end."""
        return self.fraction >= 1.0

    def claim(self, most: int) -> int:
        """Return the number of steps to make next, at most `most`, and count them; 0 at the end.

        With a limit in seconds no more than fit in what is left, and in `LONGEST`, if they take as long as
        the last ones; at first at most `FIRST`.
        """
        if self.stopped:
            most = 0
        elif self.steps is not None:
            most = min(most, max(self.steps // ROUNDS, 1), self.steps - self.taken)
        elif self.over:
            most = 0
        elif self.seconds is not None:
            most = min(most, self._steps_in(min(self.left, LONGEST)))
        self.taken += most
        self.last_claim = most, time.perf_counter()
        return most

    def _steps_in(self, seconds: float) -> int:
        """Return the number of steps that fit in some seconds at the speed of the last ones, at least 1."""
        steps, begin = self.last_claim
        if not steps:
            return FIRST
        return max(int(steps * seconds / max(time.perf_counter() - begin, TICK)), 1)

    def restart(self) -> None:
        """Start the clock again with the seconds that are left, so that a schedule begins at 0."""
        now = time.perf_counter()
        if self.seconds is not None:
            self.seconds = max(self.seconds - (now - self.begin), 0.0)
        self.begin, self.last_claim = now, (0, now)

    def for_workers(self, workers: int, stop: Callable[[], bool] | None = None) -> Deadline:
        """Return the same limit on the same clock for one part of the search, with its own threads."""
        other = Deadline(seconds=self.seconds, steps=self.steps, workers=workers, stop=stop)
        other.begin = self.begin
        return other

    def stage(self, share: float, end: float, *, taken: int = 0) -> Deadline:
        """Return the deadline of one stage of the search, which starts now.

        Args:
            share: Part of the steps, less those `taken` by earlier stages.
            end: Part of the seconds at which the stage ends, counted from the start of this deadline.
        """
        if self.steps is not None:
            steps = max(round(self.steps * share) - taken, 0)
            return Deadline(seconds=self.seconds, steps=steps, workers=self.workers, stop=self.stop)
        seconds = self.time_until(end).seconds
        return Deadline(seconds=seconds, workers=self.workers, stop=self.stop)

    def time_until(self, end: float) -> Deadline:
        """Return a deadline at a part of the seconds; without limit if this one is in steps."""
        if self.seconds is None or self.steps is not None:
            return Deadline(stop=self.stop)
        seconds = self.begin + self.seconds * end - time.perf_counter()
        return Deadline(seconds=max(seconds, 0.0), stop=self.stop)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """End the block at Ctrl-C without an error and set `interrupted`."""
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True

    @contextmanager
    def without_compilation(self) -> Iterator[None]:
        """Stop the clock while kernels are compiled in the block; they are compiled once per machine."""
        from mapping.kernels.compiling import Compiling

        with Compiling() as compiling:
            yield
        self.begin += compiling.seconds


def check_limit(seconds: float | None, steps: int | None) -> None:
    """Raise `InvalidValue` if seconds are negative or not finite, or steps are no whole number from 0.

    Raises:
        InvalidValue
    """
    if seconds is not None and not isinstance(seconds, Real):
        raise InvalidValue("seconds", f"must be a number, not {seconds!r}")
    if steps is None and seconds is not None and not 0 <= seconds < math.inf:
        raise InvalidValue("seconds", "must be finite and not below zero")
    if steps is not None:
        whole_number(steps, "steps")


Piece = TypeVar("Piece")
Result = TypeVar("Result")


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def each(task: Callable[[Piece], Result], pieces: Iterable[Piece]) -> list[Result]:
    """Return the task's result for each piece, in order; an error of any piece is raised."""
    todo = list(pieces)
    workers = min(len(todo), cores())
    if workers < 2:
        return [task(piece) for piece in todo]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(task, todo))
