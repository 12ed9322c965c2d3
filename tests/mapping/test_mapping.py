"""What the package offers, threads, kernels and how they are compiled; limits in seconds and steps."""

from __future__ import annotations

import pickle
import pydoc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numba.core.caching import UserProvidedCacheLocator

import mapping
from ingest.generate import nas
from ingest.generate.direct import torus
from mapping.deadline import Deadline, check_limit, cores, each
from mapping.kernels import forget_outdated, heap, random_numbers
from mapping.kernels.compiling import Compiling
from mapping.kernels.random_numbers import state_from
from mapping.placement.methods import congestion_descent, pair_exchange, threshold_accepting
from mapping.placement.methods.link_loads import LoadSearch
from mapping.placement.place import place
from mapping.placement.problem import Problem
from registry.errors import InvalidValue
from registry.model import Allocation
from tests.support.kernels import from_python
from tests.support.search_problems import problem_on


def test_each_name_is_that_of_its_module_and_dir_and_help_list_what_is_public() -> None:
    assert mapping.place is place
    assert all(getattr(mapping, name).__name__ == name for name in mapping.__all__)
    with pytest.raises(AttributeError, match="'plaice'"):
        mapping.plaice  # noqa: B018
    assert dir(mapping) == sorted(mapping.__all__)
    shown = pydoc.plain(pydoc.render_doc(mapping))
    assert all(name in shown for name in mapping.__all__)
    assert "Find a placement of a profile's ranks" in shown


@pytest.mark.usefixtures("processes")
def test_importing_the_package_loads_no_numpy() -> None:
    code = "import mapping, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_results_are_in_the_order_of_the_pieces_and_the_error_of_one_is_raised() -> None:
    assert each(lambda piece: piece * piece, range(5)) == [0, 1, 4, 9, 16]
    assert each(str, [7]) == ["7"]
    assert each(str, []) == []
    assert cores() >= 1
    with pytest.raises(ZeroDivisionError):
        each(lambda piece: 1 // piece, [2, 1, 0])


@pytest.mark.parametrize("folder", ["", "elsewhere"])
def test_a_change_deletes_compiled_code(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", folder and str(tmp_path / folder))
    for package in ("kernels", "routing/kernels"):
        (tmp_path / package / "__pycache__").mkdir(parents=True)
    module = tmp_path / "routing" / "kernels" / "b.py"
    (tmp_path / "kernels" / "a.py").write_text("x = 1\n")
    module.write_text("from kernels.a import x\n")
    (tmp_path / "routing" / "c.py").write_text("y = 1\n")
    assert forget_outdated(tmp_path)
    cache = module.parent / "__pycache__"
    if folder:
        of_numba = UserProvidedCacheLocator.get_suitable_cache_subpath(str(module))  # type: ignore[no-untyped-call]
        cache = tmp_path / folder / of_numba
        cache.mkdir()
    compiled = [cache / "b.f-1.py311.nbi", cache / "b.f-1.py311.1.nbc"]
    for path in compiled:
        path.write_bytes(b"compiled")
    assert not forget_outdated(tmp_path)
    (tmp_path / "routing" / "c.py").write_text("y = 2\n")
    assert not forget_outdated(tmp_path)
    assert all(path.exists() for path in compiled)
    (tmp_path / "kernels" / "a.py").write_text("x = 2\n")
    assert forget_outdated(tmp_path)
    assert not any(path.exists() for path in compiled)
    assert not forget_outdated(tmp_path)


def test_a_folder_that_is_not_writable_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "a.py").write_text("x = 1\n")
    (tmp_path / "__pycache__").write_text("a file in the cache's place")
    assert not forget_outdated(tmp_path)


put_in, drop_first = from_python(heap.put_in), from_python(heap.drop_first)
below, exponential = from_python(random_numbers.below), from_python(random_numbers.exponential)


def test_compiling_a_function_takes_time_and_calling_it_again_takes_none() -> None:
    compiled: Any = njit(lambda x: 2 * x)
    with Compiling() as first:
        assert compiled(3) == 6
    with Compiling() as again:
        assert compiled(4) == 8
    assert first.seconds > 0
    assert again.seconds == 0


def test_a_compilation_within_another_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 14.0])
    monkeypatch.setattr("mapping.kernels.compiling.time.perf_counter", lambda: next(clock))
    measured, event = Compiling(), Any
    for step in (measured.on_start, measured.on_start, measured.on_end, measured.on_end):
        step(event)  # type: ignore[arg-type]
    assert measured.seconds == 4.0


@given(keys=st.lists(st.integers(0, 20), min_size=1, max_size=30))
def test_keys_come_out_of_the_heap_in_rising_order_with_their_numbers(keys: list[int]) -> None:
    key, value = np.empty(len(keys)), np.empty(len(keys), np.int32)
    for size, new in enumerate(keys):
        put_in(key, value, size, float(new), size)
    taken = []
    for left in range(len(keys) - 1, -1, -1):
        taken.append(int(value[0]))
        assert keys[taken[-1]] == key[0]
        drop_first(key, value, left)
    assert [keys[number] for number in taken] == sorted(keys)
    assert sorted(taken) == list(range(len(keys)))


def test_random_numbers_are_uniform_and_repeatable() -> None:
    state, again = (state_from(np.random.default_rng(5)) for _ in range(2))
    drawn = np.array([below(state, 7) for _ in range(7000)])
    assert [below(again, 7) for _ in range(20)] == drawn[:20].tolist()
    np.testing.assert_allclose(np.bincount(drawn, minlength=7) / 7000, 1 / 7, atol=0.02)
    waits = np.array([exponential(state) for _ in range(20_000)])
    assert (waits >= 0).all()
    np.testing.assert_allclose([waits.mean(), waits.var()], 1.0, atol=0.06)


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("mapping.deadline.time.perf_counter", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def sixteen() -> Problem:
    fabric = torus((2, 2, 4))
    allocation = Allocation.of(fabric, fabric.hosts.tolist(), 1)
    return problem_on(fabric, nas.cg(16), allocation, "shortest-paths")


def test_what_is_left_after_preparations_is_the_whole(clock: Clock) -> None:
    deadline = Deadline(seconds=10.0)
    clock.now += 6.0
    assert deadline.fraction == pytest.approx(0.6)
    deadline.restart()
    assert deadline.fraction == 0.0
    clock.now += 3.0
    assert deadline.fraction == pytest.approx(0.75)
    assert deadline.claim(7) == 7
    clock.now += 1.0
    assert (deadline.fraction, deadline.claim(7)) == (1.0, 0)


def claims(deadline: Deadline, clock: Clock, most: int, seconds_each: Callable[[int], float]) -> list[int]:
    """Return all claims of a search, whose n-th round takes ``seconds_each(n)`` seconds for each step."""
    found: list[int] = []
    while steps := deadline.claim(most):
        clock.now += steps * seconds_each(len(found))
        found.append(steps)
    return found


def test_a_limit_in_seconds_ends_with_the_clock(clock: Clock) -> None:
    deadline = Deadline(seconds=3.5)
    assert claims(deadline, clock, 10, lambda _: 2.0**-4) == [10, 10, 10, 10, 10, 6]
    assert (deadline.taken, deadline.fraction) == (56, 1.0)


def test_no_claim_takes_longer_than_is_left_nor_much_longer_than_a_second(clock: Clock) -> None:
    assert claims(Deadline(seconds=4.0), clock, 10**6, lambda _: 2.0**-10) == [1024, 1024, 1024, 1024]
    assert clock.now == 104.0
    deadline = Deadline(seconds=10.0)
    taken = claims(deadline, clock, 10**6, lambda number: 2.0**-10 if number < 3 else 2.0**-13)
    assert taken == [1024, 1024, 1024, 1024] + [8192] * 6 + [7168]
    assert clock.now == 114.0


def test_claims_of_slow_steps_become_small_at_once(clock: Clock) -> None:
    assert claims(Deadline(seconds=9.0), clock, 500, lambda _: 2.0**-7) == [500] + [128] * 5 + [12]
    assert claims(Deadline(seconds=9.0), clock, 500, lambda _: 4.0) == [500]
    assert claims(Deadline(seconds=2.5), clock, 1, lambda _: 1.0) == [1, 1, 1]


def test_preparations_do_not_count_as_steps(clock: Clock) -> None:
    deadline = Deadline(seconds=100.0)
    assert deadline.claim(100) == 100
    clock.now += 50.0
    deadline.restart()
    assert deadline.claim(100) == 100
    clock.now += 10.0
    assert deadline.claim(100) == 10
    clock.now += 50.0
    deadline.restart()
    assert (deadline.fraction, deadline.claim(7)) == (1.0, 0)
    steps = Deadline(steps=10)
    steps.restart()
    assert (steps.claim(20), steps.fraction) == (1, 0.1)


def test_steps_and_deadlines_without_limit_are_claimed_whole(clock: Clock) -> None:
    endless = Deadline()
    for deadline in (Deadline(steps=10**8), endless):
        for _ in range(3):
            assert deadline.claim(10**5) == 10**5
            clock.now += 100.0
    assert (endless.left, endless.fraction, endless.over) == (np.inf, 0.0, False)


def test_a_search_with_long_set_up_begins_at_its_start(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    fractions = []
    begin, look = LoadSearch.__init__, LoadSearch.round

    def slow(self: LoadSearch, *given: object) -> None:
        begin(self, *given)  # type: ignore[arg-type]
        clock.now += 8.0

    def watched(self: LoadSearch, team: object, proposals: int, schedule: object, fraction: float) -> int:
        fractions.append(fraction)
        clock.now += 0.5
        return look(self, team, proposals, schedule, fraction)  # type: ignore[arg-type]

    monkeypatch.setattr(LoadSearch, "__init__", slow)
    monkeypatch.setattr(LoadSearch, "round", watched)
    start = np.arange(16, dtype=np.int32)
    list(congestion_descent.refine(sixteen(), start, Deadline(seconds=10.0), np.random.default_rng(0)))
    assert fractions == pytest.approx([0.0, 0.25, 0.5, 0.75])


@pytest.mark.parametrize("refiner", [pair_exchange, threshold_accepting])
def test_every_search_restarts_the_clock_once(refiner: object, monkeypatch: pytest.MonkeyPatch) -> None:
    restarts = []
    monkeypatch.setattr(Deadline, "restart", lambda self: restarts.append(self.taken))
    start = np.arange(16, dtype=np.int32)
    list(refiner.refine(sixteen(), start, Deadline(steps=100), np.random.default_rng(0)))  # type: ignore[attr-defined]
    assert restarts == [0]


def test_an_interrupt_ends_the_block_and_the_search() -> None:
    deadline, found = Deadline(seconds=60.0), [1]
    with deadline.interruptible():
        found.append(2)
        raise KeyboardInterrupt
    assert found == [1, 2]
    assert (deadline.interrupted, deadline.over, deadline.claim(9)) == (True, True, 0)


def test_a_pickled_deadline_goes_on_elsewhere(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mapping.deadline.time.time", lambda: clock.now + 1e9)
    deadline = Deadline(seconds=10.0, workers=3)
    clock.now += 4.0
    sent = pickle.dumps(deadline)
    clock.now += 2.0
    other = pickle.loads(sent)
    assert other.left == pytest.approx(4.0)
    assert (other.workers, other.steps) == (3, None)
    monkeypatch.setattr("mapping.deadline.time.time", lambda: 0.0)  # the clock was set back, or differs
    assert pickle.loads(sent).left == pytest.approx(6.0)


def test_stages_take_their_share_of_the_steps_or_end_at_their_part_of_the_time(clock: Clock) -> None:
    whole = Deadline(seconds=12.0, workers=2)
    clock.now += 2.0
    stage = whole.stage(1 / 3, 0.5)
    assert stage.seconds == pytest.approx(4.0)
    assert stage.workers == 2
    assert whole.time_until(0.1).over
    steps = Deadline(steps=100)
    assert (steps.stage(0.25, 0.9).steps, steps.stage(1.0, 1.0, taken=30).steps) == (25, 70)
    assert steps.time_until(0.5).left == np.inf


@pytest.mark.parametrize(("seconds", "steps"), [(-1.0, None), (np.inf, None), (np.nan, None), (1.0, -1)])
def test_limits_below_zero_or_without_end_are_errors(seconds: float, steps: int | None) -> None:
    with pytest.raises(InvalidValue):
        check_limit(seconds, steps)
