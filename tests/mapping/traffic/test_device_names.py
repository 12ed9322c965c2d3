"""Links and devices by what people call them: names with colons, adapters, GUIDs, and typos."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from mapping.traffic.device_names import (
    find_device,
    find_link,
    find_links,
    is_switch,
    link_text,
    reverse_rows,
)
from registry.errors import InvalidValue, UnknownName
from registry.model import Adapters, Fabric
from tests.support.small_fabrics import adapter_fabrics
from tests.support.traffic_jobs import two_leaves


@given(adapter_fabrics())
def test_what_a_link_is_called_leads_back_to_it(fabric: Fabric) -> None:
    for row in range(len(fabric.links)):
        assert find_link(fabric, link_text(fabric, row)) == row


@given(adapter_fabrics())
def test_the_other_direction_of_a_cable_has_its_ends_the_other_way_around(fabric: Fabric) -> None:
    links = fabric.links
    for row in range(len(links)):
        (back,) = reverse_rows(fabric, np.array([row])).tolist()
        assert (links.source[back], links.source_port[back]) == (links.target[row], links.target_port[row])
        assert (links.target[back], links.target_port[back]) == (links.source[row], links.source_port[row])
        assert reverse_rows(fabric, np.array([back])).tolist() == [row]


def test_names_may_hold_colons_and_switches_go_by_guid() -> None:
    fabric = replace(two_leaves(), names=("a0", "a1", "b0", "b1", "MF0;A:MQM/U1", "MF0;B:MQM/U1"))
    row = find_link(fabric, "MF0;A:MQM/U1:10")
    assert link_text(fabric, row) == "MF0;A:MQM/U1:10"
    assert find_link(fabric, "0xa0:10") == row
    assert find_links(fabric, "MF0;A:MQM/U1:MF0;B:MQM/U1").tolist() == [row, row + 1]
    assert find_device(fabric, "0xB0", kind="switch") == (5, -1)
    assert is_switch(fabric, "MF0;A:MQM/U1")
    assert not is_switch(fabric, "a0")
    assert not is_switch(fabric, "")


def test_hosts_go_by_an_adapters_description_or_guid() -> None:
    fabric = two_leaves()
    links = fabric.links
    adapter = np.where(links.source == 0, 0, -1)
    fabric = replace(
        fabric,
        adapters=Adapters(
            names=("a0 mlx5_0",),
            guid=np.array([0xC0FFEE], np.uint64),
            system_guid=np.zeros(1, np.uint64),
            host=np.zeros(1, np.int32),
        ),
        links=replace(links, source_adapter=adapter, target_adapter=np.where(links.target == 0, 0, -1)),
    )
    row = find_link(fabric, "a0:1")
    assert find_link(fabric, "a0 mlx5_0:1") == find_link(fabric, "0xc0ffee:1") == row
    assert find_device(fabric, "0xc0ffee", kind="host") == find_device(fabric, "a0 mlx5_0") == (0, 0)


def test_one_of_two_adapters_with_that_port_must_be_named() -> None:
    fabric = Fabric.from_arcs(
        ["h", "s"], [0, 0, 1, 1], [1, 1, 0, 0], 1.0, slots=[1, 0], forwards=[False, True]
    )
    links = fabric.links
    number = np.array([0, 1, 0, 1])
    fabric = replace(
        fabric,
        adapters=Adapters(
            names=("h one", "h two"),
            guid=np.array([1, 2], np.uint64),
            system_guid=np.zeros(2, np.uint64),
            host=np.zeros(2, np.int32),
        ),
        links=replace(
            links,
            source_port=np.where(links.source == 0, 1, 7 + number),
            target_port=np.where(links.target == 0, 1, 7 + number),
            source_adapter=np.where(links.source == 0, number, -1),
            target_adapter=np.where(links.target == 0, number, -1),
        ),
    )
    with pytest.raises(InvalidValue, match="h one:1, h two:1"):
        find_link(fabric, "h:1")
    row = find_link(fabric, "h two:1")
    assert find_link(fabric, "0x2:1") == row
    assert link_text(fabric, row) == "h two:1"
    alike = replace(fabric, adapters=replace(fabric.adapters, names=("h", "h")))
    assert link_text(alike, row) == "h 0x0000000000000002:1"
    assert find_link(alike, "h 0x0000000000000002:1") == row


def test_links_of_a_fabric_without_ports_go_by_both_ends() -> None:
    fabric = Fabric.from_arcs(["a", "b", "c"], [0, 1, 1, 2, 0], [1, 0, 2, 1, 1], 1.0)
    assert find_link(fabric, "b:c") == 3
    assert len(find_links(fabric, "a:b")) == 2
    with pytest.raises(InvalidValue, match="matches 2 links"):
        find_link(fabric, "a:b")


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("Aa:10", "closest devices: A"),
        ("A:99", "links at A: A:1, A:2, A:10, A:11"),
        ("A:b0", "links at A"),
        ("A", "DEVICE:PORT"),
        ("", "DEVICE:PORT"),
        (":", "DEVICE:PORT"),
        ("A:", "links at A"),
        ("A:10000000000000000000", "links at A"),
    ],
)
def test_a_link_that_does_not_exist_is_refused_with_what_does(text: str, remedy: str) -> None:
    with pytest.raises(UnknownName, match=remedy) as caught:
        find_link(two_leaves(), text)
    assert caught.value.kind == "link"


def test_a_switch_is_no_host_and_the_other_way_around() -> None:
    fabric = two_leaves()
    with pytest.raises(UnknownName, match="there is no switch 'a0'"):
        find_device(fabric, "a0", kind="switch")
    with pytest.raises(UnknownName, match="there is no host 'A'"):
        find_device(fabric, "A", kind="host")
    with pytest.raises(UnknownName, match="there is no host 'a7'; closest: a"):
        find_device(fabric, "a7", kind="host")
    with pytest.raises(UnknownName):
        find_device(fabric, "0xnothing")
