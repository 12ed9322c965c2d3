"""Progress bars while kernels are compiled at their first call, which happens once per machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from almanac.output.printing import progress_bars
from registry.progress import Progress, silent


@contextmanager
def kernel_progress_bars(*, piped: bool = False) -> Iterator[Progress]:
    """Show progress bars as `progress_bars` does, and one while kernels are compiled."""
    with progress_bars(piped=piped) as progress:
        if progress is silent:
            yield progress
            return
        from mapping.kernels.compiling import Compiling

        with Compiling(progress):
            yield progress
