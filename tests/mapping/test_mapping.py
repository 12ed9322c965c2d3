"""What the package offers, work in threads, and kernels: heap, random numbers, how they are compiled."""

from __future__ import annotations

import pydoc
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numba.core.caching import UserProvidedCacheLocator

import mapping
from mapping.kernels import forget_outdated, heap, random_numbers
from mapping.kernels.compiling import Compiling
from mapping.kernels.random_numbers import state_from
from mapping.placement.search.placing import place
from mapping.threads import cores, each
from tests.support.kernels import from_python


def test_each_name_is_that_of_its_module() -> None:
    assert mapping.place is place
    assert all(getattr(mapping, name).__name__ == name for name in mapping.__all__)
    with pytest.raises(AttributeError, match="'plaice'"):
        mapping.plaice  # noqa: B018


def test_dir_and_help_list_what_is_public() -> None:
    assert dir(mapping) == sorted(mapping.__all__)
    shown = pydoc.plain(pydoc.render_doc(mapping))
    assert all(name in shown for name in mapping.__all__)
    assert "Find a placement of a profile's ranks" in shown


@pytest.mark.usefixtures("processes")
def test_importing_the_package_loads_no_numpy() -> None:
    code = "import mapping, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_results_are_in_the_order_of_the_pieces() -> None:
    assert each(lambda piece: piece * piece, range(5)) == [0, 1, 4, 9, 16]
    assert each(str, [7]) == ["7"]
    assert each(str, []) == []
    assert cores() >= 1


def test_the_error_of_a_piece_is_raised() -> None:
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


def double(x: Any) -> Any:
    return 2 * x


def test_compiling_a_function_takes_time_and_calling_it_again_takes_none() -> None:
    compiled: Any = njit(double)
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
