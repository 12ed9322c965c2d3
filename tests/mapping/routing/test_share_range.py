"""Congestion over the share of non-minimal traffic: against single shares, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate
from mapping.routing.share_range import range_over_share
from registry.errors import InvalidValue
from registry.model import Allocation, Fabric, Placement, Profile
from tests.support.small_fabrics import (
    adapter_fabrics,
    profiles,
    ring_of_switches,
)


def switches_all_joined(switches: int) -> Fabric:
    """Two hosts on every switch, every switch cabled to every other."""
    s, h = np.arange(switches), switches + np.arange(2 * switches)
    a, b = np.nonzero(~np.eye(switches, dtype=bool))
    leaf = np.repeat(s, 2)
    return Fabric.from_arcs(
        [f"s{i}" for i in s] + [f"h{i}" for i in h],
        np.r_[a, h, leaf],
        np.r_[b, leaf, h],
        1.0,
        slots=np.r_[np.zeros(switches, int), np.ones(2 * switches, int)],
        forwards=False,
    )


def shifted(fabric: Fabric, by: int) -> tuple[Profile, Placement]:
    """Each host sends one byte so many hosts on."""
    n = len(fabric.hosts)
    at = np.arange(n)
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    profile = Profile.from_edges(at, (at + by) % n, np.ones(n))
    return profile, Placement(host_of_rank=allocation.hosts, allocation=allocation, strategy="given")


@given(fabric=adapter_fabrics(), profile=profiles(min_ranks=2), data=st.data())
def test_the_range_over_the_share_holds_what_any_share_gives(
    fabric: Fabric, profile: Profile, data: st.DataObject
) -> None:
    from tests.support.small_fabrics import allocations

    allocation = data.draw(allocations(fabric, profile.ranks))
    host_of_rank = allocation.host_of_slot[: profile.ranks]
    placement = Placement(host_of_rank=host_of_rank, allocation=allocation, strategy="given")
    shares = np.linspace(0, 1, 11)
    found = range_over_share(fabric, profile, placement, shares)
    for name, least, most in (
        ("congestion_seconds", found.least_seconds, found.most_seconds),
        ("network_congestion_seconds", found.least_network_seconds, found.most_network_seconds),
    ):
        at = [
            getattr(
                evaluate(fabric, profile, placement, costs=CostModel(routing=f"ugal:share={share}")), name
            )
            for share in (*shares, found.least_share, found.least_network_share)
        ]
        np.testing.assert_allclose(getattr(found, name), at[:11])
        assert least <= min(at) * (1 + 1e-9) + 1e-12
        assert most >= max(at) * (1 - 1e-9) - 1e-12
        own = at[11] if name == "congestion_seconds" else at[12]
        assert least == pytest.approx(own, abs=1e-12)


def test_a_worst_pattern_is_best_served_by_some_non_minimal_ways() -> None:
    """On six switches all joined to all, everyone sends to the next: one link of five is used, until
    detours use the others. Way by way: the direct link has 2 (1 - x) + 2 x 2/6, others 4 x / 6.
    """
    fabric = switches_all_joined(6)
    found = range_over_share(fabric, *shifted(fabric, 2))
    assert found.network_congestion_seconds[0] == 2.0
    assert found.most_network_share == 0.0
    assert found.least_network_share == 1.0
    assert found.least_network_seconds == pytest.approx(2 / 3)


def test_a_share_above_one_is_refused() -> None:
    fabric = ring_of_switches(3)
    with pytest.raises(InvalidValue, match="from 0 to 1"):
        range_over_share(fabric, *shifted(fabric, 1), shares=[2.0])
