"""Bounds on the worst cable: which cables limit a cut, and how much work is done for it."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from mapping.evaluation.bounds.cable_bounds import cut_bounds
from mapping.evaluation.bounds.cables import Cables
from mapping.evaluation.bounds.cut_groups import Groups
from mapping.evaluation.bounds.partition import Crossings
from registry.model import Longs

OUT, INTO = 4.0, 1.0


class Flows:
    """Replacement of `Crossings`: 6 bytes cross, which are found only if this is more than `above`."""

    def __init__(self, total: float = 6.0) -> None:
        self.total = total
        self.above: list[float] = []

    def least(self, slots: Longs, *, above: float = 0.0) -> tuple[float, str]:
        self.above.append(above)
        return (self.total if self.total > above else 0.0), "flows"


def two_hosts() -> tuple[Groups, Cables]:
    """Two groups with 4 bytes/s out of them and 1 byte/s into them, by one cable each."""
    first = np.array([True, False])
    none = np.zeros(2)
    groups = Groups(
        name="switch-cut",
        place="leaf switch",
        group=np.arange(2),
        slots=np.ones(2, np.int64),
        outwards=none,
        inwards=none,
        leaving=first,
        entering=~first,
        within_network=True,
    )
    return groups, Cables(usable=np.ones(2, bool), capacity=np.array([OUT, INTO]), background=none)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_cut_is_searched_for_as_far_as_the_narrower_direction_can_give_more(swapped: bool) -> None:
    """Six bytes take 1.5 s over the wide cables and 6 s over the narrow ones: more than the 5 s proved."""
    groups, cables = two_hosts()
    if swapped:
        cables = Cables(
            usable=cables.usable, capacity=cables.capacity[::-1].copy(), background=cables.background
        )
    flows = Flows()
    found = cut_bounds(cast(Crossings, flows), groups, cables, above=5.0)
    assert max(bound.value for bound in found) == 6.0
    assert sorted(bound.value for bound in found) == [1.5, 6.0]
    assert flows.above == [5.0 * min(OUT, INTO)]


def test_a_cut_that_cannot_give_more_is_not_searched_for() -> None:
    groups, cables = two_hosts()
    found = cut_bounds(cast(Crossings, Flows()), groups, cables, above=7.0)
    assert [bound.value for bound in found] == [0.0, 0.0]
    assert [bound.name for bound in found] == ["switch-cut"] * 2
