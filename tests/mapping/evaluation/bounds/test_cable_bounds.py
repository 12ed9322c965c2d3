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


class Flows:
    """Replacement of `Crossings`: 6 bytes cross, which are found only if this is more than `above`."""

    def __init__(self) -> None:
        self.above: list[float] = []

    def least(self, slots: Longs, *, above: float = 0.0) -> tuple[float, str]:
        self.above.append(above)
        return (6.0 if above < 6.0 else 0.0), "flows"


@pytest.mark.parametrize(
    ("capacity", "above", "values"), [((4, 1), 5.0, [1.5, 6]), ((1, 4), 5.0, [6, 1.5]), ((4, 1), 7.0, [0, 0])]
)
def test_a_cut_is_searched_for_as_far_as_the_narrower_direction_can_give_more(
    capacity: tuple[float, float], above: float, values: list[float]
) -> None:
    """Six bytes take 1.5 s over the wide cables and 6 s over the narrow ones: more than 5 s, less than 7."""
    first, none, flows = np.array([True, False]), np.zeros(2), Flows()
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
    cables = Cables(usable=np.ones(2, bool), capacity=np.array(capacity, np.float64), background=none)
    found = cut_bounds(cast(Crossings, flows), groups, cables, above=above)
    assert sorted(bound.value for bound in found) == sorted(values)
    assert [bound.name for bound in found] == ["switch-cut"] * 2
    assert flows.above == [above * 1.0]
