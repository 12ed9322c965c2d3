"""Channels of a pair of hosts by hand: two adapters of one port to one adapter of two ports."""

from __future__ import annotations

import numpy as np
import pytest

from mapping.routing.kernels.channels import Ends, add_cables, new_channels, pair_channels, pair_hops
from mapping.routing.kernels.paths import NO_PATH

HOPS = np.full((4, 4), 2, np.int8)
HOPS[1, 3] = NO_PATH  # the second adapter does not reach the other's second port


def ends(*, same_rail: bool) -> Ends:
    none, empty = np.zeros(5, np.int64), np.zeros(0, np.int32)
    return Ends(
        same_rail=same_rail,
        rail_ptr=np.array([0, 2, 3]),
        rail_number=np.array([0, 1, 0], np.int32),
        port_ptr=np.array([0, 1, 2, 4]),
        port_row=np.arange(4, dtype=np.int32),
        target_ptr=np.arange(5),
        target=np.arange(4, dtype=np.int32),
        up_ptr=np.array([0, 1, 2, 2, 2]),
        up_link=np.array([5, 6], np.int32),
        up_share=np.ones(2),
        down_ptr=none,
        down_link=empty,
        down_share=np.zeros(0),
    )


@pytest.mark.parametrize(
    ("same_rail", "expected"),
    [
        (False, {(0, 2): 0.25, (0, 3): 0.25, (1, 2): 0.5}),
        (True, {(0, 2): 0.5, (0, 3): 0.5}),
    ],
)
def test_bytes_are_even_over_adapters_then_over_ports(
    same_rail: bool, expected: dict[tuple[int, int], float]
) -> None:
    both, channels = ends(same_rail=same_rail), new_channels(4)
    count = pair_channels(both, HOPS, 0, 1, channels)
    pairs = zip(channels.source[:count].tolist(), channels.port[:count].tolist(), strict=True)
    assert dict(zip(pairs, channels.weight[:count].tolist(), strict=True)) == expected
    assert pair_hops(both, HOPS, channels, count) == 3  # with the cable of the sending host


def test_cables_of_a_port_get_their_shares() -> None:
    load = np.zeros(3)
    add_cables(
        np.array([0, 0, 2]), np.array([2, 0], np.int32), np.array([0.75, 0.25]),
        np.array([1, 1], np.int32), np.array([4.0, 8.0]), load,
    )  # fmt: skip
    assert load.tolist() == [3, 0, 9]
