"""Values that several threads need are computed once."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from mapping.placement.problem.problem import Memo


def test_a_value_is_made_once_by_whoever_asks_first() -> None:
    kept, together, made = Memo(), Barrier(4), []

    def make() -> object:
        made.append(1)
        return object()

    def ask(_: int) -> object:
        together.wait(10)
        return kept.once("value", make)

    with ThreadPoolExecutor(4) as pool:
        values = list(pool.map(ask, range(4)))
    assert len(made) == 1
    assert all(value is values[0] for value in values)
    assert kept.once("other", lambda: 3) == 3


def test_an_error_is_not_kept_and_a_copy_begins_empty() -> None:
    kept = Memo()
    with pytest.raises(ZeroDivisionError):
        kept.once("value", lambda: 1 // 0)
    assert kept.once("value", lambda: 5) == 5
    assert kept.once("value", lambda: 7) == 5
    assert pickle.loads(pickle.dumps(kept)).once("value", lambda: 7) == 7
