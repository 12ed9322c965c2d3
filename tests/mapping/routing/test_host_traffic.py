"""Traffic between hosts by hand: two hosts with two ranks each."""

from __future__ import annotations

import numpy as np
import pytest

from mapping.routing.host_traffic import host_traffic, packets
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Placement, Profile

PROFILE = Profile.from_edges([0, 0, 1, 2], [1, 2, 3, 0], [5.0, 7.0, 2.0, 4.0], messages=[1, 2, 1, 1], ranks=4)
ALLOCATION = Allocation(hosts=np.array([0, 1], np.int32), slots=np.array([2, 2], np.int32))


def placed(hosts: list[int]) -> Placement:
    return Placement(host_of_rank=np.array(hosts, np.int32), allocation=ALLOCATION, strategy="given")


def test_traffic_of_ranks_is_summed_by_hosts_without_that_within_a_host() -> None:
    found = host_traffic(PROFILE, placed([0, 0, 1, 1]), packet_bytes=4.0)
    assert list(zip(found.source.tolist(), found.target.tolist(), strict=True)) == [(0, 1), (1, 0)]
    assert found.bytes.tolist() == [9, 4]
    assert found.rank_pairs.tolist() == [2, 1]
    assert found.messages.tolist() == [3, 1]
    assert found.packets.tolist() == [3, 1]
    assert found.total_messages == 5


def test_bytes_in_an_unknown_number_of_messages_make_the_total_unknown() -> None:
    unknown = Profile.from_edges([0], [1], [5.0], ranks=2)
    assert np.isnan(host_traffic(unknown, placed([0, 1])).total_messages)


def test_a_message_is_at_least_one_packet() -> None:
    assert packets(PROFILE, 100.0).tolist() == [1, 2, 1, 1]


def test_another_number_of_ranks_and_a_packet_without_size_are_refused() -> None:
    with pytest.raises(InvalidPlacement):
        host_traffic(PROFILE, placed([0, 1]))
    with pytest.raises(InvalidValue):
        packets(PROFILE, 0.0)
