"""Congestion over the share of non-minimal traffic: against single shares, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.hyperx import hyperx
from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate
from mapping.routing.share_range import range_over_share
from registry.errors import InvalidValue
from registry.model import Allocation, Fabric, Placement, Profile
from tests.support.small_fabrics import adapter_fabrics, allocations, profiles


@given(fabric=adapter_fabrics(), profile=profiles(min_ranks=2), data=st.data())
def test_the_range_over_the_share_holds_what_any_share_gives(
    fabric: Fabric, profile: Profile, data: st.DataObject
) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    host_of_rank = allocation.host_of_slot[: profile.ranks]
    placement = Placement(host_of_rank=host_of_rank, allocation=allocation, strategy="given")
    shares = np.linspace(0, 1, 5)
    found = range_over_share(fabric, profile, placement, shares)
    chosen = (*shares, found.least_share, found.least_network_share)
    every = [
        evaluate(fabric, profile, placement, costs=CostModel(routing=f"ugal:share={share}"))
        for share in chosen
    ]
    at, network = (
        [getattr(one, f"{where}congestion_seconds") for one in every] for where in ("", "network_")
    )
    for given_shares, values, least, most, own in (
        (found.congestion_seconds, at, found.least_seconds, found.most_seconds, at[-2]),
        (
            *(found.network_congestion_seconds, network),
            *(found.least_network_seconds, found.most_network_seconds, network[-1]),
        ),
    ):
        np.testing.assert_allclose(given_shares, values[:-2])
        assert least <= min(values) * (1 + 1e-9) + 1e-12
        assert most >= max(values) * (1 - 1e-9) - 1e-12
        assert least == pytest.approx(own, abs=1e-12)


def test_a_worst_pattern_is_best_served_by_some_non_minimal_ways() -> None:
    """On six switches all joined to all, everyone sends to the next: one link of five is used, until
    detours use the others. Way by way: the direct link has 2 (1 - x) + 2 x 2/6, others 4 x / 6.
    """
    fabric = hyperx((6,), 2)
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    on = Placement(host_of_rank=allocation.hosts, allocation=allocation, strategy="given")
    at = np.arange(12)
    profile = Profile.from_edges(at, (at + 2) % 12, np.ones(12))
    found = range_over_share(fabric, profile, on)
    assert found.network_congestion_seconds[0] == 2.0
    assert found.most_network_share == 0.0
    assert found.least_network_share == 1.0
    assert found.least_network_seconds == pytest.approx(2 / 3)
    with pytest.raises(InvalidValue, match="from 0 to 1"):
        range_over_share(fabric, profile, on, shares=[2.0])
