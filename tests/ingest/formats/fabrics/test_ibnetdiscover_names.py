"""ibnetdiscover: which machine an adapter belongs to, what its host is called, and what is no host."""

from __future__ import annotations

import pytest

from registry.errors import InputError
from registry.model import SWITCH, Fabric
from tests.support.ibnetdiscover_scans import TREE, fabric_of, read, swap


def described(*descriptions: str, system: str | None = None) -> Fabric:
    """The small tree with the descriptions of its first adapters replaced, in both places."""
    text = TREE
    for number, description in enumerate(descriptions, start=1):
        text = text.replace(f'"node{number:04d} mlx5_0"', f'"{description}"')
    return fabric_of(swap(text, r"^sysimgguid=0x2c90000f0.*$", f"sysimgguid={system}") if system else text)


def hosts(fabric: Fabric) -> set[str]:
    return {fabric.names[host] for host in fabric.hosts}


@pytest.mark.parametrize(
    "description",
    [
        "MT4129 ConnectX7   Mellanox Technologies", "MT23108 InfiniHost Mellanox Technologies",
        "Mellanox Technologies", "", "localhost HCA-1", "localhost mlx5_0", "localhost.localdomain HCA-1",
        "HCA-1", "mlx5_0",
    ],
)  # fmt: skip
def test_adapters_without_a_machines_name_are_named_by_system_image_guid(description: str) -> None:
    assert {"guid-0x0002c90000f00100", "guid-0x0002c90000f00200", "node0003"} <= hosts(
        described(description, description)
    )
    assert "guid-0x00000000abcdef00" in hosts(described(description, description, system="0xabcdef00"))
    assert len(hosts(described(description, description, system="0xabcdef00"))) == 5


def test_a_nameless_adapter_joins_the_named_one_of_the_same_machine() -> None:
    assert hosts(
        described("big HCA-1", "localhost HCA-2", "big HCA-3", "big", "big x", "big y", system="0xa1")
    ) == {"big"}


def test_two_nameless_adapters_without_system_guid_are_two_hosts() -> None:
    text = swap(TREE, r"^sysimgguid=.*\n", "")
    text = text.replace('"node0001 mlx5_0"', '"localhost HCA-1"').replace(
        '"node0002 mlx5_0"', '"localhost HCA-1"'
    )
    assert {"guid-0x0002c90000f00100", "guid-0x0002c90000f00200"} <= hosts(fabric_of(text))


def test_the_same_description_for_all_adapters_of_a_host_is_one_host() -> None:
    fabric = described("node HCA-1", "node HCA-1", "node HCA-1")
    (host,) = fabric.vertices(["node"])
    assert (fabric.adapters.host == host).sum() == 3
    assert fabric.slots[host] == 1


def test_switches_of_one_name_are_distinguished_by_guid() -> None:
    fabric = fabric_of(TREE.replace("leaf02", "leaf01"))
    leaves = [name for name in fabric.names if name.startswith("leaf")]
    assert leaves == ["leaf01 [0x0002c90000100300]", "leaf01 [0x0002c90000100400]"]


def test_a_switch_named_like_a_host_gives_way() -> None:
    fabric = fabric_of(TREE.replace("leaf01", "node0001"))
    assert "node0001" in hosts(fabric)
    assert "node0001 [0x0002c90000100300]" in fabric.names


def test_a_switch_whose_name_imitates_anothers_guid_is_refused() -> None:
    text = TREE.replace("leaf02", "leaf01").replace("spine01", "leaf01 [0x0002c90000100300]")
    with pytest.raises(InputError, match="another device already has the name"):
        read(text)


def test_a_switch_without_a_name_is_named_by_guid() -> None:
    assert "guid-0x0002c90000100300" in fabric_of(TREE.replace('"leaf01"', '""')).names


@pytest.mark.parametrize("name", ['say "hi" # lid 3', "# 1xSDR", 'a" lid 9 4xEDR "b', "<b>&amp;[red]"])
def test_descriptions_may_hold_anything(name: str) -> None:
    assert name in fabric_of(TREE.replace("leaf01", name)).names


def test_aggregation_nodes_are_no_hosts_and_their_links_are_dropped() -> None:
    fabric = described("Mellanox Technologies Aggregation Node")
    assert len(fabric.hosts) == 5
    assert len(fabric.adapters) == 5
    assert fabric.cable_count == 13


def test_a_router_is_neither_a_host_nor_does_it_forward() -> None:
    text = TREE.replace('Ca\t1 "H-0002c90000f00100"', 'Rt\t1 "R-0002c90000f00100"')
    text = text.replace('"H-0002c90000f00100"', '"R-0002c90000f00100"')
    parsed = read(text.replace("caguid=0x2c90000f00100", "rtguid=0x2c90000f00100"))
    assert parsed.fabric is not None
    (router,) = parsed.fabric.vertices(["node0001 mlx5_0"], kind="router")
    assert (parsed.fabric.kind[router], parsed.fabric.forwards[router], parsed.fabric.slots[router]) == (
        SWITCH,
        False,
        0,
    )
    assert parsed.fabric.cable_count == 14
    assert parsed.warnings == ("1 router is stored as a switch that does not forward",)
