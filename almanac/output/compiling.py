"""Progress bars while kernels are compiled at their first call, which happens once per machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from almanac.output.printing import progress_bars
from registry.progress import Progress, silent

COMPILING = "compiling kernels (once per machine)"
"""Phase of the progress."""


@contextmanager
def kernel_progress_bars() -> Iterator[Progress]:
    """Show progress bars as `progress_bars` does, and one while kernels are compiled."""
    with progress_bars() as progress:
        if progress is silent:
            yield progress
            return
        with compilation_shown(progress):
            yield progress


@contextmanager
def compilation_shown(progress: Progress) -> Iterator[None]:
    """Report when kernels are compiled during the block; those that are read from disk are not reported."""
    from numba.core import event

    class Compiled(event.Listener):
        """Counts the functions that are being compiled: one compiles those that it calls."""

        open = 0

        def on_start(self, event: object) -> None:
            self.open += 1
            progress(COMPILING, 0)

        def on_end(self, event: object) -> None:
            self.open -= 1
            if self.open == 0:
                progress(COMPILING, 1, 1)

    with event.install_listener("numba:compile", Compiled()):
        yield
