"""Options of a search: limits, chains and workers."""

from __future__ import annotations

from typing import Any

import pytest

from mapping.placement.search.options import SearchOptions
from registry.errors import InvalidValue


def test_workers_under_steps_depend_on_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert SearchOptions(steps=1000).start_clock().workers == 2
    assert SearchOptions().start_clock().workers == 64


def test_options_as_a_search_takes_them() -> None:
    options = SearchOptions(strategies=["greedy:starts=8+pair-exchange"], steps=50, workers=3)
    (chain,) = options.chains()
    assert str(chain) == "greedy:starts=8+pair-exchange"
    assert (SearchOptions().chains(), SearchOptions().limit) == ((), {"limit_seconds": 10.0})
    assert options.limit == {"limit_steps": 50}
    deadline = options.start_clock()
    assert (deadline.steps, deadline.workers) == (50, 3)
    assert SearchOptions(objective="mapping-coefficient").default_distance == "equivalent+2"
    assert SearchOptions(objective="2*hop-bytes+congestion").default_distance == "links"


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"moves": -1}, {"seconds": -0.5}, {"steps": -1}])
def test_options_out_of_range_are_errors(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        SearchOptions(**wrong)
