"""Compile kernels before they are needed: ``almanac doctor --warm``, and the last steps of the demonstration.

numba compiles a function for the types of its arguments when it is first called, and stores the machine code
on disk. So each part below calls what it is named after, on the smallest input that reaches every kernel.
Parts that share few kernels run side by side.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from registry.progress import Progress, silent


def circuits() -> None:
    """Search circuits."""
    from mapping.circuits.paper_partition import load_kernels

    load_kernels(silent)


def _simulated(mode: str) -> None:
    """Simulate two messages."""
    import numpy as np

    from ingest.generate.collectives import ring
    from ingest.generate.direct import torus
    from mapping.simulation.messages import from_profile
    from mapping.simulation.simulate import simulate
    from registry.model import Allocation, Placement

    both = np.arange(2, dtype=np.int32)
    allocation = Allocation(hosts=both, slots=np.ones(2, np.int32))
    placement = Placement(host_of_rank=both, allocation=allocation, strategy="given")
    simulate(torus((2,)), placement, from_profile(ring(2)), mode=mode)


def packets() -> None:
    """Simulate packets."""
    from registry.model.simulation import PACKETS

    _simulated(PACKETS)


def flits() -> None:
    """Simulate flits."""
    from registry.model.simulation import FLITS

    _simulated(FLITS)


def placements() -> None:
    """Search placements with every method and objective, and compute routes, metrics and bounds."""
    from almanac.conformance import cases
    from mapping.cost.report import report_pareto_set, report_placement
    from mapping.distances.cost_model import CostModel
    from mapping.placement.case import PlacementCase
    from mapping.placement.catalog import STRATEGIES
    from mapping.placement.search import SearchOptions

    every = [f"in-order+{method.name}" if method.refines else method.name for method in STRATEGIES]
    searches = (
        SearchOptions(steps=STEPS),
        SearchOptions(steps=STEPS, objective="hop-bytes"),
        SearchOptions(steps=STEPS, strategies=every),
    )
    kinds = (CostModel(), CostModel(routing="up-down"), CostModel(routing="ecmp", distance="equivalent"))
    for case in tuple(cases())[:2]:
        for options, costs in product(searches, kinds):
            report_placement(PlacementCase.of(*case[1:], options, costs, None, None))
        report_pareto_set(PlacementCase.of(*case[1:], searches[0], None, None, None))


STEPS = 200
"""Proposals of a search."""
PARTS = (placements, circuits, packets, flits)
"""All kernels, the longest part first."""


def warm(progress: Progress = silent, parts: Sequence[Callable[[], None]] = PARTS) -> tuple[str, ...]:
    """Compile all kernels that are not stored yet, with a process for each processor.

    `progress` receives the number of parts that are ready.

    Returns:
        Names of the parts that failed: their kernels are compiled when they are first called.
    """
    from mapping.deadline import cores
    from mapping.kernels.compiling import COMPILING

    waiting, failed = list(parts), []
    running: dict[BaseProcess, Callable[[], None]] = {}
    try:
        while waiting or running:
            progress(COMPILING, len(parts) - len(waiting) - len(running), len(parts))
            while waiting and len(running) < cores():
                part = waiting.pop(0)
                running[_started(part)] = part
            wait([process.sentinel for process in running])
            for process in [process for process in running if not process.is_alive()]:
                part = running.pop(process)
                failed += [part.__name__] if process.exitcode else []
        progress(COMPILING, len(parts), len(parts))
    finally:
        for process in running:
            process.terminate()
            process.join()
    return tuple(failed)


@contextmanager
def precompiled_kernels(progress: Progress = silent) -> Iterator[Callable[[], None]]:
    """Compile the kernels that the demonstration needs last in another process during the block.

    Yields:
        Waits until the kernels are compiled.
    """
    process = _started(_last_of_demonstration)

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


def _last_of_demonstration() -> None:
    packets()
    circuits()


def _started(part: Callable[[], None]) -> BaseProcess:
    """Start a process that calls a part."""
    process = multiprocessing.get_context("spawn").Process(target=_call, args=(part,), daemon=True)
    process.start()
    return process


def _call(part: Callable[[], None]) -> None:
    """Call a part; Ctrl-C is handled by the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    part()
