"""Our own search, from where the paper's loop ends: links are changed under the partition, which moves on.

The paper partitions and routes from scratch for each topology. Here the partition stays, flows whose links
are gone are routed anew, and the refinement of section 3.2.3 goes on from there: far more topologies are seen
in the same time. A topology that is a little worse is taken too, ever less so, and the best is kept. At the
begin, and wherever that leads nowhere for long, the search goes on from the best in another way
(`mapping.reconfiguration.regrouping`).
"""

from __future__ import annotations

import time
from dataclasses import replace

from mapping.reconfiguration.bounds import throughput_bound
from mapping.reconfiguration.co_optimise import Reconfiguration, reconfigure
from mapping.reconfiguration.coarsening import HIGHEST
from mapping.reconfiguration.loading import load_kernels
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.seeds import CONDENSED, TORUS
from mapping.reconfiguration.topology import Topology
from mapping.reconfiguration.trials import Trials
from registry.errors import InvalidValue
from registry.progress import Progress, silent

TRIALS = 1000
"""Changes of links that are tried, unless told."""
WORSE = 0.05
"""How much worse, relatively, a topology may be that is taken at the begin; nothing at the end."""
ROUNDING = 1e-9
"""How far below an upper bound, relatively, a throughput counts as having reached it."""
BEST_SEEDS = (CONDENSED, TORUS)
"""Seed topologies that `best_of` begins with, unless told."""


def best_of(
    application: Application,
    machine: Machine,
    *,
    seed_topologies: tuple[str | Topology, ...] = BEST_SEEDS,
    trials: int = TRIALS,
    seed: int = 0,
    seconds: float | None = None,
    expansion: str = HIGHEST,
    progress: Progress = silent,
) -> Reconfiguration:
    """The paper's loop from each of some seed topologies, and `improve` on the best of them.

    An interrupt ends all with the best so far, marked incomplete; before anything was found it is passed on.

    Parameters
    ----------
    seconds : float, optional
        In all, about: half for the loops, in equal parts. The compilation of kernels does not count.
    expansion : str
        Order in which graphs are coarsened: the highest expansion first, or the ``lowest`` as the paper has
        it. With that the heaviest vertices grow to hubs, which no partition balances.

    Raises
    ------
    InvalidValue, UnknownName
        As `mapping.reconfiguration.co_optimise.reconfigure`.
    """
    if not seed_topologies:
        raise InvalidValue("best_of.seed_topologies", "are none")
    load_kernels(progress, searches=trials > 0)
    begin = time.perf_counter()
    most = _ceiling(application, machine)
    share = None if seconds is None else seconds / 2 / len(seed_topologies)
    best: Reconfiguration | None = None
    for start in seed_topologies:
        try:
            found = reconfigure(
                application,
                machine,
                seed_topology=start,
                seed=seed,
                seconds=share,
                expansion=expansion,
                progress=progress,
            )
        except KeyboardInterrupt:
            if best is None:
                raise
            return replace(best, complete=False)
        if best is None or found.throughput > best.throughput:
            best = found
        if not found.complete:
            return replace(best, complete=False)
        if best.throughput >= most:
            return best
    assert best is not None
    left = None if seconds is None else max(seconds - (time.perf_counter() - begin), 0.0)
    return improve(
        application,
        machine,
        best,
        trials=trials,
        seed=seed,
        seconds=left,
        expansion=expansion,
        progress=progress,
    )


def improve(
    application: Application,
    machine: Machine,
    found: Reconfiguration,
    *,
    pinned: bool = False,
    trials: int = TRIALS,
    seed: int = 0,
    seconds: float | None = None,
    expansion: str = HIGHEST,
    progress: Progress = silent,
) -> Reconfiguration:
    """Change links under the present partition for as long as that helps; never worse than what was found.

    The search ends early where nothing can be better, by `mapping.reconfiguration.bounds`. Gains are added to
    the trail as iterations: what differs is told against the topology that was held then. An interrupt ends
    the search with the best so far, marked incomplete.

    Parameters
    ----------
    found : Reconfiguration
        Of this application on this machine.
    pinned : bool
        Vertices stay on their nodes: links and routes alone change.
    trials : int
        Changes of links to try, >= 0.
    seed : int
        >= 0; the same seed and trials give the same bytes, unless `seconds` end the search.
    seconds : float, optional
        Try no more after that.
    expansion : str
        Of partitions from scratch: `mapping.reconfiguration.coarsening.coarsen`.

    Raises
    ------
    InvalidValue, UnknownName
    """
    if trials < 0:
        raise InvalidValue("improve.trials", f"is {trials}, must not be negative")
    if seed < 0:
        raise InvalidValue("improve.seed", f"is {seed}, must not be negative")
    try:
        load_kernels(progress, searches=trials > 0 and not pinned)
        search = Trials(application, machine, found, seed, pinned, expansion)
        complete, most = found.complete, _ceiling(application, machine)
    except KeyboardInterrupt:
        return replace(found, complete=False)
    try:
        for trial in range(trials):
            late = seconds is not None and search.elapsed >= seconds
            if late or search.best.solution.throughput >= most:
                break
            if search.try_one(WORSE * (1 - trial / trials)):
                progress("trials", trial, trials, search.best.solution.throughput)
    except KeyboardInterrupt:
        complete = False
    best = search.best
    return Reconfiguration(
        topology=best.topology, solution=best.solution, trail=tuple(search.trail), complete=complete
    )


def _ceiling(application: Application, machine: Machine) -> float:
    """A throughput that no search exceeds, but for rounding."""
    return throughput_bound(application, machine, flows=0).throughput * (1 - ROUNDING)
