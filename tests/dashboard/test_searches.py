from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import cast

import numpy as np
import pytest

from dashboard.shared import searches as module
from dashboard.shared.searches import (
    DONE,
    FAILED,
    RUNNING,
    STOPPED,
    STOPPING,
    WAITING,
    Searches,
    SearchStatus,
)
from mapping.cost.report import PlacementReport, report_placement
from mapping.placement.case import PlacementCase
from mapping.placement.search import SearchOptions
from registry.errors import InvalidValue
from registry.model import Allocation, Profile
from registry.progress import Progress
from registry.registry import Registry
from tests.support import paths
from tests.support.infiniband_data import infiniband
from tests.support.waiting import comes_true

SECONDS = 60.0
"""Longest wait for what takes a moment."""


def connect() -> Registry:
    return cast(Registry, nullcontext())


def case(options: SearchOptions) -> PlacementCase:
    fabric = infiniband("torus-4x4x4-dor")
    generator = np.random.default_rng(0)
    source, target = generator.integers(0, 64, (2, 600))
    profile = Profile.from_edges(source, target, generator.random(600) * 1e6, ranks=64)
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    return PlacementCase(profile=profile, fabric=fabric, allocation=allocation, options=options)


def searching(seconds: float, steps: int | None = None) -> Callable[[Registry, Progress], PlacementReport]:
    options = SearchOptions(seconds=seconds, steps=steps, workers=1)
    return lambda _, progress: report_placement(case(options), progress)


@pytest.fixture
def searches() -> Iterator[Searches]:
    made = Searches(connect)
    yield made
    made.close()


def ended(searches: Searches, job: str) -> SearchStatus:
    assert comes_true(lambda: (now := searches.status(job)) and now.ended)
    found = searches.status(job)
    assert found is not None
    return found


def state(searches: Searches, job: str) -> str:
    now = searches.status(job)
    return "" if now is None else now.state


def test_a_search_reports_its_progress_and_result(searches: Searches) -> None:
    assert searches.status("c/1") is None
    assert searches.start("c/1", searching(SECONDS, steps=2000))
    found = ended(searches, "c/1")
    assert (found.state, found.error) == (DONE, None)
    assert found.result is not None
    assert found.result.complete
    assert found.best is not None
    assert found.result.congestion_seconds <= found.result.in_order_seconds
    assert found.done == found.total == 2000


@pytest.mark.parametrize("closing", [False, True])
def test_a_stopped_search_keeps_the_best_so_far_as_incomplete(searches: Searches, closing: bool) -> None:
    searches.start("c/1", searching(10 * SECONDS))
    assert comes_true(lambda: (now := searches.status("c/1")) and now.best is not None and now.done > 0)
    searches.close() if closing else searches.stop("c/1")
    found = ended(searches, "c/1")
    assert found.state == DONE
    assert found.done < found.total
    assert found.result is not None
    assert not found.result.complete
    assert found.result.congestion_seconds <= found.result.in_order_seconds


def waiting_for(event: threading.Event) -> Callable[[Registry, Progress], PlacementReport]:
    """Work that tells it is alive until the event, and then fails; it does not look after interrupts."""

    def work(registry: Registry, progress: Progress) -> PlacementReport:
        while not event.wait(0.005):
            progress("waiting", 1, 2, 3.0)
        raise InvalidValue("x", "is wrong")

    return work


def test_there_is_one_search_at_a_time_of_a_job_and_its_error_is_stored(searches: Searches) -> None:
    go = threading.Event()
    assert searches.start("c/1", waiting_for(go))
    assert not searches.start("c/1", waiting_for(go))
    assert searches.start("c/2", waiting_for(go))
    go.set()
    found = ended(searches, "c/1")
    assert found.state == FAILED
    assert isinstance(found.error, InvalidValue)
    assert searches.start("c/1", waiting_for(go))
    ended(searches, "c/1")
    searches.forget("c/1")
    assert searches.status("c/1") is None


def test_a_search_that_is_stopped_before_it_has_anything_ends_without_a_placement(searches: Searches) -> None:
    searches.start("c/1", waiting_for(threading.Event()))
    waiting = SearchStatus(state=RUNNING, phase="waiting", done=1, total=2, best=3)
    assert comes_true(lambda: searches.status("c/1") == waiting)
    searches.stop("c/1")
    found = ended(searches, "c/1")
    assert (found.state, found.result, found.error) == (STOPPED, None, None)


def test_searches_wait_for_their_turn_and_can_be_stopped_meanwhile(searches: Searches) -> None:
    go = threading.Event()
    for number in range(module.AT_ONCE):
        searches.start(f"c/{number}", waiting_for(go))
        assert comes_true(lambda job=f"c/{number}": state(searches, job) == RUNNING)  # type: ignore[misc]
    searches.start("late", waiting_for(go))
    searches.start("later", waiting_for(go))
    searches.stop("late")
    assert [state(searches, job) for job in ("late", "later")] == [STOPPED, WAITING]
    go.set()
    assert ended(searches, "later").state == FAILED
    assert state(searches, "late") == STOPPED


def test_a_search_is_stopping_until_it_has_ended(searches: Searches) -> None:
    go = threading.Event()

    def work(registry: Registry, progress: Progress) -> PlacementReport:
        go.wait(SECONDS)
        progress("late", 0)
        raise AssertionError

    searches.start("c/1", work)
    assert comes_true(lambda: state(searches, "c/1") == RUNNING)
    searches.stop("c/1")
    now = searches.status("c/1")
    assert now is not None
    assert (now.state, now.ended) == (STOPPING, False)
    go.set()
    assert ended(searches, "c/1").state == STOPPED


def test_the_share_that_is_done_stays_between_nothing_and_all() -> None:
    for done, total, share in ((0, 0, 0), (5, 10, 0.5), (12, 10, 1), (-1, 10, 0)):
        assert SearchStatus(done=done, total=total).share == share


ENDING = """
import time
from tests.dashboard.test_searches import SearchOptions, Searches, case, connect, report_placement

searches = Searches(connect)
options = SearchOptions(seconds=600, workers=2)
searches.start("c/1", lambda registry, progress: report_placement(case(options), progress))
while searches.status("c/1").best is None:
    time.sleep(0.01)
print("searching")
"""


def test_a_server_that_ends_does_not_wait_for_its_searches(processes: None) -> None:
    command = [sys.executable, "-c", ENDING]
    assert subprocess.check_output(command, cwd=paths.ROOT, text=True, timeout=300) == "searching\n"
