"""Short names of devices and links, and that no two devices get the same one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from mapping.traffic.device_names import find_link
from mapping.traffic.short_names import full_link, short_link, short_name, short_names, short_port
from registry.model import Fabric
from tests.support.small_fabrics import adapter_fabrics
from tests.support.traffic_jobs import two_leaves


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("MF0;B09-P1-IBLEAF-01-08:MQM9701/U1", "B09-P1-IBLEAF-01-08"),
        ("MF0;core:MQM8700", "core"),
        ("SwitchX -  Mellanox Technologies", "SwitchX -  Mellanox Technologies"),
        ("rack1:leaf2", "rack1:leaf2"),
        ("node0001", "node0001"),
        ("MF0;odd", "MF0;odd"),
        ("", ""),
    ],
)
def test_a_short_name_leaves_out_the_vendors_part(full: str, short: str) -> None:
    assert short_name(full) == short


@given(adapter_fabrics())
def test_no_two_devices_have_the_same_short_name(fabric: Fabric) -> None:
    assert len(set(short_names(fabric))) == len(set(fabric.names))


def test_two_units_of_a_director_keep_their_full_names() -> None:
    class Named:
        names = ("MF0;core:MCS7500/U1", "MF0;core:MCS7500/U2", "MF0;leaf:MQM9700/U1", "leaf2")

    assert short_names(Named) == (*Named.names[:2], "leaf", "leaf2")


def test_a_link_is_named_by_the_ports_at_both_ends() -> None:
    fabric = two_leaves()
    fabric = replace(fabric, names=(*fabric.names[:4], "MF0;A:MQM9700/U1", "MF0;B:MQM9700/U1"))
    row = find_link(fabric, "MF0;A:MQM9700/U1:10")
    ports = fabric.links.source_port[row], fabric.links.target_port[row]
    assert short_link(fabric, row) == "A:{} → B:{}".format(*ports)
    assert full_link(fabric, row) == "MF0;A:MQM9700/U1:{} → MF0;B:MQM9700/U1:{}".format(*ports)


@given(adapter_fabrics())
def test_the_short_name_of_a_port_finds_its_link(fabric: Fabric) -> None:
    described = replace(fabric, names=tuple(f"MF0;{name}:MQM9700/U1" for name in fabric.names))
    names = short_names(described)
    for row in range(len(fabric.links)):
        assert find_link(described, short_port(described, row, "source", names)) == row


def test_a_link_without_known_ports_is_named_by_its_devices() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0], [1], 1.0)
    assert short_link(fabric, 0) == full_link(fabric, 0) == "a → b"
