"""Predicted loads of links compared with measured rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.traffic.shared_load import against_counters
from registry.errors import InvalidValue
from registry.model import Fabric
from tests.support.small_fabrics import adapter_fabrics


@given(adapter_fabrics(), st.integers(0, 9))
def test_periods_make_the_sums_over_measured_network_links_alike(fabric: Fabric, seed: int) -> None:
    rng = np.random.default_rng(seed)
    load = rng.random(len(fabric.links)) * 1e9
    rate = np.where(rng.random(len(fabric.links)) < 0.3, np.nan, rng.random(len(fabric.links)) * 1e9)
    found = against_counters(fabric, load, rate)
    both = [m for m in range(len(rate)) if fabric.network_link[m] and not np.isnan(rate[m])]
    if not both:
        assert np.isnan(found.iterations_per_second)
        return
    capacity = fabric.links.capacity
    assert sum(found.predicted_share[m] * capacity[m] for m in both) == pytest.approx(
        sum(rate[m] for m in both)
    )
    assert np.array_equal(found.measured_share, rate / capacity, equal_nan=True)
    assert np.array_equal(np.isnan(found.difference), np.isnan(rate))


@given(adapter_fabrics())
def test_traffic_that_is_just_as_predicted_differs_nowhere(fabric: Fabric) -> None:
    load = np.arange(1.0, len(fabric.links) + 1)
    found = against_counters(fabric, load, 7 * load)
    if fabric.network_link.any():
        assert found.iterations_per_second == pytest.approx(7)
        assert np.allclose(found.difference, 0)


@given(adapter_fabrics())
def test_without_traffic_on_either_side_there_is_no_scale(fabric: Fabric) -> None:
    none, some = np.zeros(len(fabric.links)), np.ones(len(fabric.links))
    assert np.isnan(against_counters(fabric, none, some).iterations_per_second)
    assert np.isnan(against_counters(fabric, some, none).iterations_per_second)
    with pytest.raises(InvalidValue):
        against_counters(fabric, some[1:], some)
