"""When kernels are compiled, which the clock of a search leaves out: it occurs once per machine."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from numba.core import event

from registry.progress import Progress, silent

COMPILING = "compiling kernels (once per machine)"
"""Phase of the progress."""


class Compiling(event.Listener):
    """Measures compilation while it is entered; loading from the cache on disk does not count.

    Compilations that one causes in another, or that threads make at once, count once. `progress` is told of
    each, too.
    """

    def __init__(self, progress: Progress = silent) -> None:
        self._progress = progress
        self._open = 0
        self._since = 0.0
        self.seconds = 0.0
        """Spent so far."""

    def on_start(self, event: event.Event) -> None:
        """Start the clock with the first compilation."""
        if self._open == 0:
            self._since = time.perf_counter()
            self._progress(COMPILING, 0)
        self._open += 1

    def on_end(self, event: event.Event) -> None:
        """Stop the clock with the last compilation, whether it succeeded or failed."""
        self._open -= 1
        if self._open == 0:
            self.seconds += time.perf_counter() - self._since
            self._progress(COMPILING, 1, 1)

    def __enter__(self) -> Self:
        event.register("numba:compile", self)  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        event.unregister("numba:compile", self)  # type: ignore[no-untyped-call]
