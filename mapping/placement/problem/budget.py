"""How long a search goes on: until a moment, or for a number of proposals; the same loop serves both."""

from __future__ import annotations

import time
from collections.abc import Callable

ROUNDS = 100
"""A budget of steps is cut into at least so many rounds, so that a schedule has steps of its own."""


class Budget:
    """Proposals to make before a deadline, or up to a number.

    Rounds, schedules and results under a number of steps do not depend on the clock.

    Parameters
    ----------
    seconds : float, optional
        From now on.
    steps : int, optional
        Proposals; then `seconds` is not looked at.
    workers : int
        Threads that a refiner may use. A refiner cuts its work in so many parts in the same way on any
        machine, so that results under a number of steps do not depend on the threads that really run.
    stop : callable, optional
        Asked before each claim: once true, all is spent (an interrupt).
    """

    __slots__ = ("_begin", "_seconds", "_steps", "_stop", "taken", "workers")

    def __init__(
        self,
        *,
        seconds: float = 0.0,
        steps: int | None = None,
        workers: int = 1,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        self._begin = time.perf_counter()
        self._seconds = seconds
        self._steps = steps
        self._stop = stop
        self.workers = workers
        self.taken = 0
        """Proposals made so far."""

    @property
    def fraction(self) -> float:
        """How much is spent, 0 to 1."""
        if self._stop is not None and self._stop():
            return 1.0
        if self._steps is not None:
            return min(self.taken / self._steps, 1.0) if self._steps > 0 else 1.0
        spent = time.perf_counter() - self._begin
        return min(spent / self._seconds, 1.0) if spent < self._seconds else 1.0

    def prepared(self) -> None:
        """Count what is left as the whole: a schedule shall not pass while a refiner sets itself up."""
        now = time.perf_counter()
        self._seconds = max(self._seconds - (now - self._begin), 0.0)
        self._begin = now

    def claim(self, most: int) -> int:
        """Number of proposals to make next, at most `most`; they count as made. 0 where all is spent."""
        if self._stop is not None and self._stop():
            most = 0
        elif self._steps is not None:
            most = min(most, max(self._steps // ROUNDS, 1), self._steps - self.taken)
        elif self.fraction >= 1.0:
            most = 0
        self.taken += most
        return most
