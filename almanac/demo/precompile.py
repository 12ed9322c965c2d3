"""Kernels that the demonstration needs last, compiled beside its first steps: its first run is shorter."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from registry.progress import Progress, silent

COMPILING = "compiling kernels (once a machine)"
"""The phase that progress is told while they are waited for."""


@contextmanager
def kernels_ahead(progress: Progress = silent) -> Iterator[Callable[[], None]]:
    """Compile in another process; what is given waits for its end, and leaving ends it."""
    process = multiprocessing.get_context("spawn").Process(target=compile_kernels, daemon=True)
    process.start()

    def wait() -> None:
        if process.is_alive():
            progress(COMPILING, 0)
        process.join()  # whatever came of it: kernels that are not there are compiled where they are needed

    try:
        yield wait
    finally:
        process.terminate()
        process.join()


def compile_kernels() -> None:
    """Simulate two messages and load what circuits are searched with; numba keeps the kernels on disk."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    import numpy as np

    from ingest.generate.patterns import ring
    from ingest.generate.tori import torus
    from mapping.reconfiguration.loading import load_kernels
    from mapping.simulation.messages import from_profile
    from mapping.simulation.simulate import simulate
    from registry.model import Allocation, Placement

    both = np.arange(2, dtype=np.int32)
    allocation = Allocation(hosts=both, slots=np.ones(2, np.int32))
    placement = Placement(host_of_rank=both, allocation=allocation, strategy="given")
    simulate(torus((2,)), placement, from_profile(ring(2)))
    load_kernels(silent)
