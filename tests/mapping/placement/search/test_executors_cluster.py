"""Searches on a real Dask cluster: the same results as on one machine, nothing lost at an interrupt."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mapping
from mapping.cluster import open_cluster
from mapping.placement.problem.objective import score
from mapping.placement.problem.problem import host_indices
from mapping.placement.search.options import SearchOptions
from registry.model import Placement
from registry.progress import Progress, silent
from tests.support.dask_cluster import DaskCluster, dask_cluster
from tests.support.search_problems import ring, ring_problem

RANKS = 40


def found_in(executor: Any = "threads", progress: Progress = silent, **options: Any) -> Placement:
    given = {"objective": "hop-bytes", "executor": executor, **options}
    return mapping.place(*ring(RANKS, RANKS), progress=progress, **given)


def content(placement: Placement) -> tuple[Any, ...]:
    """Return all of a placement but the time that it took."""
    names = ("strategy", "parameters", "seed", "steps", "complete")
    return (placement.host_of_rank.tobytes(), *(getattr(placement, name) for name in names))


def test_steps_give_the_same_bytes_with_several_seeds(dask: DaskCluster) -> None:
    options: dict[str, Any] = {"steps": 20_000, "workers": 3, "seeds": 3}
    with open_cluster(dask.address) as cluster:
        there = found_in(cluster, **options)
    assert content(there) == content(found_in(**options))
    assert str(there.parameters["strategies"]).count("pair-exchange") >= 3


@pytest.mark.usefixtures("processes")
def test_a_worker_that_is_killed_during_the_search_changes_nothing(tmp_path: Path) -> None:
    options: dict[str, Any] = {"steps": 4_000_000, "workers": 3, "seeds": 3}
    reports: list[tuple[str, float, float | None]] = []

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        reports.append((phase, done, best))
        if phase == "layout":  # the first report of a task
            os.kill(other.workers[0], signal.SIGKILL)

    with dask_cluster(tmp_path, 3) as other, open_cluster(other.address) as cluster:
        there = found_in(cluster, progress=progress, **options)
        assert "Remove worker" in other.log()
    assert content(there) == content(found_in(**options))
    assert max(done for _, done, _ in reports) > 0  # proposals on other machines are counted
    assert min(best for _, _, best in reports if best is not None) < np.inf


def test_an_interrupt_keeps_the_best_and_frees_the_workers(dask: DaskCluster) -> None:
    problem = ring_problem(RANKS, RANKS)
    seen: list[float] = []

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        seen.append(np.inf if best is None else best)
        if phase.endswith("pair-exchange"):  # a task has begun to exchange
            raise KeyboardInterrupt

    with open_cluster(dask.address) as cluster:
        found = found_in(cluster, seconds=1e6, progress=progress)  # the interrupt ends it
        assert not found.complete
        assert found.steps > 0
        kept = score(problem, host_indices(problem.allocation, found.host_of_rank))
        assert kept.hop_bytes <= min(seen) < np.inf
    with open_cluster(dask.address) as cluster:
        assert [one.result(20.0) for one in [cluster.submit(abs, -1) for _ in range(3)]] == [1] * 3


def test_each_machine_gets_a_chain_if_the_limit_is_in_seconds(dask: DaskCluster) -> None:
    with open_cluster(dask.address) as cluster:
        one = SearchOptions(strategies=["greedy"], executor=cluster)
        assert (one.repeats(1), one.repeats(2), one.repeats(4)) == (3, 2, 1)
        assert replace(one, steps=5).repeats(1) == 1
        assert replace(one, seeds=2).repeats(1) == 2
        assert one.start_clock().workers == 3
        in_steps = replace(one, steps=5)
        assert (one.for_task(cluster, 2).workers, in_steps.for_task(cluster, 2).workers) == (1, None)
    assert SearchOptions(strategies=["greedy"]).repeats(1) == 1
