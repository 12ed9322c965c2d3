"""Options of a search: what to minimise, with which strategies, how long, and on how many threads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from mapping.cluster import Cluster
from mapping.deadline import Deadline, check_limit
from mapping.distances.distances import EQUIVALENT_2, LINKS
from mapping.placement.catalog import Chain, Strategy
from mapping.placement.problem.objective import parse_objective
from mapping.placement.search.executors import THREADS, Executor
from mapping.threads import cores
from registry.errors import InvalidValue, UnknownName
from registry.model.views import content, whole_number

DEFAULT_STEP_WORKERS = 2
"""Default number of workers under a limit in steps: fixed, so that results depend on no machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What a search minimises and how long it runs.

    Attributes
    ----------
    objective : str
        ``congestion`` (worst link, then worst network link, then hop-bytes), ``hop-bytes``, ``dilation``
        (average dilation: the same order as hop-bytes), ``mapping-coefficient``, or levels of weighted
        sums such as ``2*congestion+hop-bytes,max-dilation`` (`mapping.placement.problem.objective`).
    strategies : sequence of str or callable, or None
        Names of strategies (``greedy``), chains of a strategy and refiners
        (``greedy:starts=8+pair-exchange``), or refiners alone (``congestion-descent``), which start from
        the present placement or else from ranks in order; the best result wins. A strategy always runs to
        its end. A function of a `Problem` and a random generator that returns the host index of each rank
        is a strategy too. Default: a portfolio whose result is never worse than ranks in order.
    seconds : float
        Wall seconds, preparation included, but not the first compilation of kernels on a machine.
    steps : int or None
        Number of proposals instead of seconds: the same seed and workers then give the same placement.
    seed : int
    seeds : int or None
        How often each chain runs, each time with other random numbers; default: once, and on a cluster, if
        the limit is in seconds, so often that each of its machines has a chain.
    workers : int or None
        Threads (or processes); default: one per processor of this process or thread of the cluster, or 2 if
        `steps` is given.
    executor : str or Executor
        ``threads``, ``processes``, a `mapping.cluster.Cluster`, or an executor of the caller
        (`mapping.placement.search.executors`).
    moves : int or None
        Most ranks that may move from the present placement; only for searches that move few ranks.
    consecutive : bool
        True if consecutive ranks fill each host, as torchrun and DeepSpeed start them: only the order of the
        hosts is searched, which must have the same number of slots.

    Raises
    ------
    InvalidValue
        Seconds, steps, seed, seeds, workers or moves out of range.
    """

    objective: str = "congestion"
    strategies: Sequence[str | Strategy] | None = None
    seconds: float = 10.0
    steps: int | None = None
    seed: int = 0
    seeds: int | None = None
    workers: int | None = None
    executor: str | Executor = THREADS
    moves: int | None = None
    consecutive: bool = False

    def __post_init__(self) -> None:
        check_limit(self.seconds, self.steps)
        for name, low in (("steps", 0), ("seed", 0), ("seeds", 1), ("workers", 1), ("moves", 0)):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, whole_number(value, name, low))

    @property
    def default_distance(self) -> str:
        """Convention of distances that the objective uses if the cost model names none."""
        leads = parse_objective(self.objective).leading == "mapping-coefficient"
        return EQUIVALENT_2 if leads else LINKS

    @property
    def limit(self) -> dict[str, float | int]:
        """The limit as a placement records it."""
        return {"limit_seconds": self.seconds} if self.steps is None else {"limit_steps": self.steps}

    def chains(self) -> tuple[Chain, ...]:
        """Return the chains of `strategies`; empty for the default portfolio.

        Raises
        ------
        UnknownName
            An unknown strategy, refiner or option, with the closest names.
        InvalidValue
            An empty sequence, or a value that does not fit its option.
        """
        if self.strategies is None:
            return ()
        if isinstance(self.strategies, str) or not self.strategies:
            raise InvalidValue("strategies", "must be a sequence of at least one name")
        return tuple(Chain.parse(one) if isinstance(one, str) else Chain.of(one) for one in self.strategies)

    def start_clock(self) -> Deadline:
        """Return the deadline of a search that starts now."""
        threads = self.executor.threads if isinstance(self.executor, Cluster) else cores()
        default = threads if self.steps is None else DEFAULT_STEP_WORKERS
        return Deadline(seconds=self.seconds, steps=self.steps, workers=self.workers or default)

    def repeats(self, chains: int) -> int:
        """Return how often each of a number of chains runs."""
        if self.seeds is None and self.steps is None and isinstance(self.executor, Cluster):
            return max(math.ceil(self.executor.machines / max(chains, 1)), 1)
        return self.seeds or 1

    def for_task(self, cluster: Cluster, tasks: int) -> SearchOptions:
        """Return the options for one of several whole searches that run on a cluster at the same time.

        The threads of the cluster are divided evenly, unless the limit is in steps.
        """
        share = max(cluster.threads // max(tasks, 1), 1) if self.steps is None else None
        return replace(self, executor=THREADS, workers=self.workers or share)


def search_options(
    options: SearchOptions | None, changes: Mapping[str, Any], default: SearchOptions | None = None
) -> SearchOptions:
    """Return search options with some of them changed, as `mapping.place` takes them by keyword.

    Raises
    ------
    UnknownName
        An unknown option, with the closest names.
    InvalidValue
    """
    found = content(options or default or SearchOptions(), SearchOptions, "options")
    known = [field.name for field in fields(SearchOptions)]
    for name in changes:
        if name not in known:
            raise UnknownName("search option", name, known)
    return replace(found, **changes)
