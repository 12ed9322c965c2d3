"""Single shortest paths by hand."""

from __future__ import annotations

import numpy as np

from mapping.routing.kernels.paths import new_spread
from mapping.routing.kernels.single_paths import ArcCables, Demands, HashedFlows, carry_hashed, carry_singly
from mapping.routing.network import arc_arrays


def test_each_demand_takes_the_path_with_less_load_so_far() -> None:
    diamond = arc_arrays(np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]), np.ones(4, np.bool_))
    zeros = np.zeros(3, np.int32)
    demands = Demands(start=zeros, goal=zeros, amount=np.array([5.0, 3.0, 1.0]))
    arc_load, length = np.zeros(4), np.empty(3, np.int32)
    hops_to = np.array([[2, 1, 1, 0]], np.int8)
    carry_singly(diamond, np.ones(4), hops_to, demands, new_spread(4, 4), arc_load, length)
    assert arc_load.tolist() == [5, 4, 5, 4]
    assert length.tolist() == [2, 2, 2]


def test_all_flows_of_a_demand_take_the_only_path() -> None:
    line = arc_arrays(np.array([0, 1]), np.array([1, 2]), np.ones(3, np.bool_))
    cables = ArcCables(np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2, np.int32))
    flows = HashedFlows(
        ptr=np.array([0, 2]),
        start=np.array([0, 1], np.int32),
        key=np.array([7, 8]),
        amount=np.array([6.0, 1.0]),
        flows=3,
        seed=1,
    )
    load = np.zeros(2)
    length = carry_hashed(line, cables, np.array([2], np.int32), flows, load)
    np.testing.assert_allclose(load, [7.0, 6.0])
    assert length.tolist() == [2, 1]
