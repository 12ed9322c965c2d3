"""Compile the kernels that the demonstration needs last while its first steps run."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from registry.progress import Progress, silent


@contextmanager
def precompiled_kernels(progress: Progress = silent) -> Iterator[Callable[[], None]]:
    """Compile kernels in another process during the block; end that process with the block.

    Yields
    ------
    function
        Waits until the kernels are compiled.
    """
    process = multiprocessing.get_context("spawn").Process(target=compile_kernels, daemon=True)
    process.start()

    def wait() -> None:
        if process.is_alive():
            from mapping.kernels.compiling import COMPILING

            progress(COMPILING, 0)
        process.join()  # if it failed, kernels are compiled when they are first called

    try:
        yield wait
    finally:
        process.terminate()
        process.join()


def compile_kernels() -> None:
    """Simulate two messages and load the kernels of the circuit search; numba stores them on disk."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent process
    import numpy as np

    from ingest.generate.patterns import ring
    from ingest.generate.tori import torus
    from mapping.reconfiguration.paper.partition import load_kernels
    from mapping.simulation.messages import from_profile
    from mapping.simulation.simulate import simulate
    from registry.model import Allocation, Placement

    both = np.arange(2, dtype=np.int32)
    allocation = Allocation(hosts=both, slots=np.ones(2, np.int32))
    placement = Placement(host_of_rank=both, allocation=allocation, strategy="given")
    simulate(torus((2,)), placement, from_profile(ring(2)))
    load_kernels(silent)
