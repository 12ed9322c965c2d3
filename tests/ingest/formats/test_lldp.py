"""LLDP: the neighbours that lldpd reports, of a device or a site; ends that are named in different ways."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.formats.fabrics.lldp import LLDP, port_number, port_rate
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.pipeline import plan
from registry.errors import InputError
from registry.model import Fabric
from tests.support.inputs import DATA, fabric_in, file, read
from tests.support.sure import sure
from tests.support.switch_trees import cables_of

ALL = ("leaf1", "leaf2", "spine1", "node1", "node2", "node3", "node4")
SITE = [
    ("leaf1", 1, "node1", 0), ("leaf1", 2, "node2", 0), ("leaf1", 49, "spine1", 1),
    ("leaf1", 50, "spine1", 2), ("leaf2", 1, "node3", 0), ("leaf2", 2, "node4", 0),
    ("leaf2", 49, "spine1", 3), ("leaf2", 50, "spine1", 4),
]  # fmt: skip


def site(contents: Mapping[str, str | bytes], options: Options | None = None) -> Parsed:
    return LLDP.parse([file(content, name) for name, content in contents.items()], options or Options())


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
    assert cables_of(fabric) == SITE
    assert fabric.cable_count == 8
    assert hosts(fabric) == ["node1", "node2", "node3", "node4"]
    assert set(fabric.links.capacity.tolist()) == {1.25e9}
    assert parsed.warnings == ()
    assert not sure(parsed.assumed).any()


def test_both_shapes_give_the_same_fabric() -> None:
    for name in ("leaf1", "node1", "spine1"):
        objects = fabric_in(site({f"{name}.json": read(f"lldp/{name}.json")}))
        lists = fabric_in(site({f"{name}.json0": read(f"lldp/{name}.json0")}))
        assert cables_of(objects) == cables_of(lists)
        assert objects.names == lists.names
        assert objects.kind.tolist() == lists.kind.tolist()


@given(st.sets(st.sampled_from(ALL), min_size=1))
def test_any_part_of_the_files_gives_the_cables_of_its_devices(names: set[str]) -> None:
    parsed = site({f"{name}.json0": read(f"lldp/{name}.json0") for name in sorted(names)})
    assert cables_of(fabric_in(parsed)) == [one for one in SITE if one[0] in names or one[2] in names]
    assert parsed.warnings == ()


def test_files_of_one_folder_are_one_observation_and_two_of_one_device_are_refused() -> None:
    paths = [DATA / "lldp" / f"{name}.json0" for name in ALL]
    intake = plan(paths, Options(cluster="c"))
    assert (sure(intake.fabric).cable_count, intake.source) == (8, "lldp")
    with pytest.raises(InputError, match="a second file of the device leaf1"):
        site({"leaf1.json": read("lldp/leaf1.json"), "leaf1.json0": read("lldp/leaf1.json0")})


def test_a_file_under_another_name_is_that_of_the_device_that_its_neighbours_see() -> None:
    contents = {f"{name}.json0": read(f"lldp/{name}.json0") for name in ALL if name != "node3"}
    contents["-"] = read("lldp/node3.json0")
    parsed = site(contents)
    assert cables_of(fabric_in(parsed)) == SITE
    assert parsed.warnings == ("the file named - is that of node3, according to its neighbours",)


def test_a_cable_that_one_end_alone_reports_is_kept_with_a_warning() -> None:
    both = neighbours(("swp1", "sw2", "swp1"), ("swp2", "sw2", "swp2"))
    parsed = site({"sw1.json": both, "sw2.json": neighbours(("swp1", "sw1", "swp1"))})
    assert cables_of(fabric_in(parsed)) == [("sw1", 1, "sw2", 1), ("sw1", 2, "sw2", 2)]
    assert parsed.warnings[0] == (
        "1 cable is reported by one end only, although the other end's file is there; "
        "the first: sw1 swp2 sees sw2 swp2"
    )


def test_ends_known_by_address_only_are_joined_in_order() -> None:
    switch = neighbours(("swp1", "n1", "aa:01"), ("swp2", "n1", "aa:02"), kind="mac")
    host = neighbours(("ens1", "sw1", "swp1"), ("ens2", "sw1", "swp2"))
    fabric = fabric_in(site({"sw1.json": switch, "n1.json": host}))
    assert cables_of(fabric) == [("n1", 1, "sw1", 1), ("n1", 2, "sw1", 2)]
    assert fabric.hosts.tolist() == [0]


def test_hosts_are_known_by_the_names_of_ports_then_by_capabilities_then_by_neighbours() -> None:
    def found(*rows: tuple[str, str, str], **more: Any) -> list[str]:
        return hosts(fabric_in(site({"sw.json": neighbours(*rows, **more)})))

    station = [{"type": "Station", "enabled": True}, {"type": "Bridge", "enabled": False}]
    bridge = [{"type": "Bridge", "enabled": True}, {"type": "Station", "enabled": True}]
    assert found(("swp1", "a", "eth0"), ("swp2", "b", "Ethernet4"), capability=bridge) == ["a"]
    by_address = (("swp1", "a", "00:01"), ("swp2", "b", "00:02"))
    assert found(*by_address, kind="mac", capability=station) == ["a", "b"]
    assert found(*by_address, kind="mac", capability=bridge) == []
    assert found(*by_address, kind="mac") == ["a", "b"]


def test_a_neighbour_without_a_name_is_called_by_its_id_and_several_on_a_port_have_a_warning() -> None:
    text = '{"lldp": {"interface": {"swp1": {"chassis": {"id": {"type": "mac", "value": "aa:bb"}}, "port": '
    text += '{"id": {"type": "ifname", "value": "eth0"}}}}}}'
    assert fabric_in(site({"sw.json": text})).names == ("aa:bb", "sw")
    parsed = site({"sw.json": neighbours(("swp1", "a", "eth0"), ("swp1", "b", "eth0"))})
    assert cables_of(fabric_in(parsed)) == [("a", 0, "sw", 1), ("b", 0, "sw", 1)]
    assert "1 port has several neighbours: each is taken as a cable" in parsed.warnings


def test_a_missing_rate_is_the_callers_and_a_reported_one_is_kept() -> None:
    text = neighbours(("swp1", "a", "eth0"))
    parsed = site({"sw.json": text}, Options(rate=5e10))
    assert set(fabric_in(parsed).links.capacity.tolist()) == {5e10}
    assert sure(parsed.assumed).all()
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


Row = tuple[str, str, str, str, str]
"""A file's port, and of its neighbour the name, the type and value of the port's id, and the description."""


def named(contents: Mapping[str, str | bytes]) -> Parsed:
    return site({f"lldp/{name}.json": content for name, content in contents.items()})


def stored(folder: str, *names: str) -> Parsed:
    return named({name: read(f"lldp/{folder}/{name}.json") for name in names})


def reports(*rows: Row) -> str:
    """A file in the other shape."""
    interfaces = []
    for local, peer, kind, value, description in rows:
        port = {"id": {"type": kind, "value": value}, "descr": description}
        chassis = {peer: {"id": {"type": "mac", "value": f"id-{peer}"}}}
        interfaces.append({local: {"chassis": chassis, "port": port}})
    return json.dumps({"lldp": {"interface": interfaces}})


def hosts(fabric: Fabric) -> list[str]:
    return [fabric.names[host] for host in fabric.hosts]


def test_files_named_in_short_are_those_of_the_devices_that_neighbours_name_in_full() -> None:
    parsed = stored("full-names", "leaf1", "node1", "node2")
    fabric = fabric_in(parsed)
    assert hosts(fabric) == ["node1.cluster.local", "node2.cluster.local"]
    leaf = "leaf1.cluster.local"
    assert cables_of(fabric) == [(leaf, k, f"node{k}.cluster.local", 0) for k in (1, 2)]
    assert parsed.warnings == ()


def test_a_device_is_one_whether_files_or_neighbours_name_it_in_short_or_in_full() -> None:
    leaf = reports(("swp1", "node1", "ifname", "eth0", ""))
    node = reports(("eth0", "leaf1", "ifname", "swp1", ""))
    parsed = named({"leaf1.cluster.local": leaf, "node1.cluster.local": node})
    assert cables_of(fabric_in(parsed)) == [("leaf1", 1, "node1", 0)]
    short = reports(("eth0", "leaf1", "ifname", "swp1", ""))
    parsed = named({"node1": short, "node2": reports(("eth0", "leaf1.cluster.local", "ifname", "swp2", ""))})
    assert cables_of(fabric_in(parsed)) == [("leaf1.cluster.local", k, f"node{k}", 0) for k in (1, 2)]


def test_two_devices_with_one_short_name_stay_apart_and_a_file_of_either_has_a_warning() -> None:
    spine = reports(
        ("swp1", "leaf1.a.local", "ifname", "swp49", ""), ("swp2", "leaf1.b.local", "ifname", "swp49", "")
    )
    parsed = named({"spine1": spine, "leaf1": reports(("swp1", "node1", "ifname", "eth0", ""))})
    to_spine = [("leaf1.a.local", 49, "spine1", 1), ("leaf1.b.local", 49, "spine1", 2)]
    assert cables_of(fabric_in(parsed)) == [("leaf1", 1, "node1", 0), *to_spine]
    assert parsed.warnings[0].startswith(
        "no neighbour reports the device leaf1, and several devices have this name"
    )
    by_cables = named({"spine1": spine, "leaf1": reports(("swp49", "spine1", "ifname", "swp2", ""))})
    assert cables_of(fabric_in(by_cables)) == to_spine


def test_addresses_are_not_shortened() -> None:
    parsed = named({"10.0.0.1": reports(("swp1", "10.0.0.2", "ifname", "swp1", ""))})
    assert cables_of(fabric_in(parsed)) == [("10.0.0.1", 1, "10.0.0.2", 1)]


def test_a_port_reported_by_its_alias_is_the_one_of_the_neighbours_file() -> None:
    parsed = stored("sonic-alias", "leaf301", "spine101", "node1", "node2")
    fabric = fabric_in(parsed)
    assert hosts(fabric) == ["node1", "node2"]
    ends = ((0, "spine101", 120), (4, "spine101", 124), (8, "node1", -1), (12, "node2", -1))
    assert cables_of(fabric) == [("leaf301", *end) for end in ends]
    assert parsed.warnings == ()


@pytest.mark.parametrize("name", ["leaf301", "spine101"])
def test_without_the_neighbours_file_an_alias_gives_way_to_the_name_beside_it(name: str) -> None:
    found = [cable for cable in cables_of(fabric_in(stored("sonic-alias", name))) if cable[2] == "spine101"]
    assert found == [("leaf301", 0, "spine101", 120), ("leaf301", 4, "spine101", 124)]


@pytest.mark.parametrize("kind", ["local", "ifname", "ifalias"])
def test_an_alias_with_an_operators_text_beside_it_is_matched_by_the_other_end(kind: str) -> None:
    leaf = ("Ethernet0", "spine", kind, "etp31", "to leaf"), ("Ethernet4", "spine", kind, "etp32", "to leaf")
    ends = ("Ethernet124", "Ethernet4"), ("Ethernet120", "Ethernet0")
    spine = [(local, "leaf", "ifname", port, "x") for local, port in ends]
    parsed = named({"leaf": reports(*leaf), "spine": reports(*spine)})
    assert cables_of(fabric_in(parsed)) == [("leaf", 0, "spine", 120), ("leaf", 4, "spine", 124)]
    assert parsed.warnings[0].startswith("2 cables have no rate")


def test_cables_of_which_both_ends_report_aliases_only_are_joined_in_order_with_a_warning() -> None:
    leaf = ("Ethernet8", "spine", "local", "etp4", "up"), ("Ethernet4", "spine", "local", "etp31", "up")
    ends = ("Ethernet120", "etp2"), ("Ethernet12", "etp3")
    spine = [(local, "leaf", "local", port, "down") for local, port in ends]
    parsed = named({"leaf": reports(*leaf), "spine": reports(*spine)})
    assert cables_of(fabric_in(parsed)) == [("leaf", 4, "spine", 120), ("leaf", 8, "spine", 12)]
    assert "2 cables are known by neither port's own name" in parsed.warnings[0]


def test_what_one_end_alone_reports_is_a_cable_and_its_description_makes_no_switch() -> None:
    leaf = reports(("Ethernet0", "spine", "local", "etp31", "Ethernet120"))
    parsed = named({"leaf": leaf, "spine": reports(("Ethernet124", "leaf", "local", "etp2", "Ethernet4"))})
    assert cables_of(fabric_in(parsed)) == [("leaf", 0, "spine", 120), ("leaf", 4, "spine", 124)]
    assert parsed.warnings[0].startswith("2 cables are reported by one end only")
    station = reports(("swp1", "node1", "mac", "0c:42:a1:00:00:01", "embedded LLDP agent 1"))
    assert hosts(fabric_in(named({"leaf1": station}))) == ["node1"]
