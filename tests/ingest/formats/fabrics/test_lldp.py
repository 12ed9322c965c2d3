"""LLDP: the neighbours that lldpd reports, in both shapes of its JSON, of one device or of a whole site."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.fabrics import lldp
from ingest.formats.fabrics.lldp import port_number, port_rate
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.pipeline import plan
from registry.errors import InputError
from registry.model import Fabric
from tests.support.inputs import DATA, fabric_in, file, read

ALL = ("leaf1", "leaf2", "spine1", "node1", "node2", "node3", "node4")
SITE = {
    ("leaf1", 1, "node1", 0), ("leaf1", 2, "node2", 0), ("leaf2", 1, "node3", 0), ("leaf2", 2, "node4", 0),
    ("leaf1", 49, "spine1", 1), ("leaf1", 50, "spine1", 2),
    ("leaf2", 49, "spine1", 3), ("leaf2", 50, "spine1", 4),
}  # fmt: skip


def site(contents: Mapping[str, str | bytes], options: Options | None = None) -> Parsed:
    return lldp.parse([file(content, name) for name, content in contents.items()], options or Options())


def cables(fabric: Fabric) -> set[tuple[str, int, str, int]]:
    links = fabric.links
    return {
        (fabric.names[a], p, fabric.names[b], q)
        for a, p, b, q in zip(
            links.source.tolist(),
            links.source_port.tolist(),
            links.target.tolist(),
            links.target_port.tolist(),
            strict=True,
        )
        if a < b
    }


def neighbours(*rows: tuple[str, str, str], kind: str = "ifname", **more: Any) -> str:
    """A file in the shape json0: own port, neighbour and its port."""
    interfaces = [
        {
            "name": local,
            "chassis": [{"id": [{"type": "mac", "value": f"id-{peer}"}], "name": [{"value": peer}], **more}],
            "port": [{"id": [{"type": kind, "value": port}]}],
        }
        for local, peer, port in rows
    ]
    return json.dumps({"lldp": [{"interface": interfaces}]})


def test_all_files_of_a_site_are_one_fabric_with_each_cable_once() -> None:
    parsed = site({f"site/{name}.json0": read(f"lldp/{name}.json0") for name in ALL})
    fabric = fabric_in(parsed)
    assert cables(fabric) == SITE
    assert fabric.cable_count == 8
    assert [fabric.names[host] for host in fabric.hosts] == ["node1", "node2", "node3", "node4"]
    assert set(fabric.links.capacity.tolist()) == {1.25e9}
    assert parsed.warnings == ()
    assert parsed.assumed is not None
    assert not parsed.assumed.any()


def test_both_shapes_give_the_same_fabric() -> None:
    for name in ("leaf1", "node1", "spine1"):
        objects = fabric_in(site({f"{name}.json": read(f"lldp/{name}.json")}))
        lists = fabric_in(site({f"{name}.json0": read(f"lldp/{name}.json0")}))
        assert cables(objects) == cables(lists)
        assert objects.names == lists.names
        assert objects.kind.tolist() == lists.kind.tolist()


@given(st.sets(st.sampled_from(ALL), min_size=1))
def test_any_part_of_the_files_gives_the_cables_of_its_devices(names: set[str]) -> None:
    parsed = site({f"{name}.json0": read(f"lldp/{name}.json0") for name in sorted(names)})
    assert cables(fabric_in(parsed)) == {cable for cable in SITE if cable[0] in names or cable[2] in names}
    assert parsed.warnings == ()


def test_files_of_one_folder_are_one_observation_and_two_of_one_device_are_refused() -> None:
    paths = [DATA / "lldp" / f"{name}.json0" for name in ALL]
    intake = plan(paths, Options(cluster="c"))
    assert intake.fabric is not None
    assert intake.fabric.cable_count == 8
    assert intake.source == "lldp"
    with pytest.raises(InputError, match="a second file of the device leaf1"):
        site({"leaf1.json": read("lldp/leaf1.json"), "leaf1.json0": read("lldp/leaf1.json0")})


def test_a_file_under_another_name_is_that_of_the_device_that_its_neighbours_see() -> None:
    contents = {f"{name}.json0": read(f"lldp/{name}.json0") for name in ALL if name != "node3"}
    contents["-"] = read("lldp/node3.json0")
    parsed = site(contents)
    assert cables(fabric_in(parsed)) == SITE
    assert parsed.warnings == ("the file named - is that of node3, according to its neighbours",)


def test_a_cable_that_one_end_alone_reports_is_kept_with_a_warning() -> None:
    parsed = site(
        {
            "sw1.json": neighbours(("swp1", "sw2", "swp1"), ("swp2", "sw2", "swp2")),
            "sw2.json": neighbours(("swp1", "sw1", "swp1")),
        }
    )
    assert cables(fabric_in(parsed)) == {("sw1", 1, "sw2", 1), ("sw1", 2, "sw2", 2)}
    (warning, *_) = parsed.warnings
    assert warning == (
        "1 cable is reported by one end only, although the other end's file is there; "
        "the first: sw1 swp2 sees sw2 swp2"
    )


def test_ends_known_by_address_only_are_joined_in_order() -> None:
    parsed = site(
        {
            "sw1.json": neighbours(("swp1", "n1", "aa:01"), ("swp2", "n1", "aa:02"), kind="mac"),
            "n1.json": neighbours(("ens1", "sw1", "swp1"), ("ens2", "sw1", "swp2")),
        }
    )
    fabric = fabric_in(parsed)
    assert cables(fabric) == {("n1", 1, "sw1", 1), ("n1", 2, "sw1", 2)}
    assert fabric.hosts.tolist() == [0]


def test_hosts_are_known_by_the_names_of_ports_then_by_capabilities_then_by_neighbours() -> None:
    def hosts(text: str) -> list[str]:
        fabric = fabric_in(site({"sw.json": text}))
        return [fabric.names[host] for host in fabric.hosts]

    station = [{"type": "Station", "enabled": True}, {"type": "Bridge", "enabled": False}]
    bridge = [{"type": "Bridge", "enabled": True}, {"type": "Station", "enabled": True}]
    assert hosts(neighbours(("swp1", "a", "eth0"), ("swp2", "b", "Ethernet4"), capability=bridge)) == ["a"]
    by_address = (("swp1", "a", "00:01"), ("swp2", "b", "00:02"))
    assert hosts(neighbours(*by_address, kind="mac", capability=station)) == ["a", "b"]
    assert hosts(neighbours(*by_address, kind="mac", capability=bridge)) == []
    assert hosts(neighbours(*by_address, kind="mac")) == ["a", "b"]


def test_a_neighbour_without_a_name_is_called_by_its_id_and_several_on_a_port_have_a_warning() -> None:
    text = '{"lldp": {"interface": {"swp1": {"chassis": {"id": {"type": "mac", "value": "aa:bb"}}, "port": '
    text += '{"id": {"type": "ifname", "value": "eth0"}}}}}}'
    assert fabric_in(site({"sw.json": text})).names == ("aa:bb", "sw")
    parsed = site({"sw.json": neighbours(("swp1", "a", "eth0"), ("swp1", "b", "eth0"))})
    assert cables(fabric_in(parsed)) == {("a", 0, "sw", 1), ("b", 0, "sw", 1)}
    assert "1 port has several neighbours: each is taken as a cable" in parsed.warnings


def test_a_missing_rate_is_the_callers_and_a_reported_one_is_kept() -> None:
    text = neighbours(("swp1", "a", "eth0"))
    parsed = site({"sw.json": text}, Options(rate=5e10))
    assert set(fabric_in(parsed).links.capacity.tolist()) == {5e10}
    assert parsed.assumed is not None
    assert parsed.assumed.all()
    silent = site({"sw.json": text})
    assert "1 cable has no rate in the file: 1.25e+09 bytes/s each is assumed" in silent.warnings[0]
    parsed = site({"node1.json": read("lldp/node1.json")}, Options(rate=5e10))
    assert set(fabric_in(parsed).links.capacity.tolist()) == {1.25e9}


@pytest.mark.parametrize(
    ("medium", "rate"),
    [
        ("10GbaseT - Four-pair Category 6A or better, full duplex mode only", 1.25e9),
        ("100GBaseCR4 - 100GBASE-CR4", 1.25e10),
        ("1000BaseTFD - Four-pair Category 5 UTP, full duplex mode", 1.25e8),
        ("100BaseTXFD", 1.25e7),
        ("other or unknown", None),
        ("0GbaseT", None),
    ],
)
def test_the_speed_stands_in_the_name_of_the_medium(medium: str, rate: float | None) -> None:
    assert port_rate(medium) == rate


@pytest.mark.parametrize(
    ("name", "number"),
    [("swp49", 49), ("eth0", 0), ("Ethernet1/5", 1005), ("xe-0/1/12", 1012), ("ens1f0np0", 1000000),
     ("aa:bb:01", -1), ("uplink", -1), ("", -1), ("Ethernet1024", -1), ("p999/999/999/999", -1)],
)  # fmt: skip
def test_the_number_of_a_port_is_made_of_the_numbers_in_its_name(name: str, number: int) -> None:
    assert port_number(name) == number


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"lldp": {}}', "no neighbours"),
        ('{"lldp": [{"interface": []}]}', "no neighbours"),
        ('{"lldp": {"interface": {"eth0": {}}}}', "chassis: is not an object"),
        ('{"lldp": {"interface": {"eth0": 3}}}', "is not an object"),
        ('{"lldp": 3}', "is not an object"),
        (neighbours(("swp1", "", "eth0")).replace("id-", ""), "is not a valid name of a device"),
        (neighbours(("swp1", "a\tb", "eth0")), "is not a valid name of a device"),
        (neighbours(("swp1", "sw", "swp1")), "no cable between two devices"),
        (neighbours(("swp1", "a", "eth0")).replace('"port"', '"prt"'), "port: is not an object"),
        ('{"lldp": {"interface": {"a": {}, "a": {}}}}', "an object repeats this key"),
    ],
)
def test_wrong_reports_are_refused(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        site({"site/sw.json": text})
    assert caught.value.path == "site/sw.json"
