"""LLDP of which the two ends of a cable name devices or ports differently: in short and in full, by alias."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from ingest.formats.fabrics import lldp
from ingest.options import Options
from ingest.parsed import Parsed
from registry.model import Fabric
from tests.support.inputs import fabric_in, file, read

Row = tuple[str, str, str, str, str]
"""A file's port, and of its neighbour the name, the type and value of the port's id, and the description."""


def site(contents: Mapping[str, str | bytes]) -> Parsed:
    files = [file(content, f"lldp/{name}.json") for name, content in contents.items()]
    return lldp.parse(files, Options())


def stored(folder: str, *names: str) -> Parsed:
    return site({name: read(f"lldp/{folder}/{name}.json") for name in names})


def neighbours(*rows: Row) -> str:
    interfaces = [
        {
            local: {
                "chassis": {peer: {"id": {"type": "mac", "value": f"id-{peer}"}}},
                "port": {"id": {"type": kind, "value": value}, "descr": description},
            }
        }
        for local, peer, kind, value, description in rows
    ]
    return json.dumps({"lldp": {"interface": interfaces}})


def cables(fabric: Fabric) -> list[tuple[str, int, str, int]]:
    """Return each cable as often as it is there."""
    links, names = fabric.links, fabric.names
    columns = (links.source, links.source_port, links.target, links.target_port)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return sorted((names[a], p, names[b], q) for a, p, b, q in rows if a < b)


def hosts(fabric: Fabric) -> list[str]:
    return [fabric.names[host] for host in fabric.hosts]


def test_files_named_in_short_are_those_of_the_devices_that_neighbours_name_in_full() -> None:
    parsed = stored("full-names", "leaf1", "node1", "node2")
    fabric = fabric_in(parsed)
    assert hosts(fabric) == ["node1.cluster.local", "node2.cluster.local"]
    assert cables(fabric) == [
        ("leaf1.cluster.local", 1, "node1.cluster.local", 0),
        ("leaf1.cluster.local", 2, "node2.cluster.local", 0),
    ]
    assert parsed.warnings == ()


def test_files_named_in_full_are_those_of_the_devices_that_neighbours_name_in_short() -> None:
    parsed = site(
        {
            "leaf1.cluster.local": neighbours(("swp1", "node1", "ifname", "eth0", "")),
            "node1.cluster.local": neighbours(("eth0", "leaf1", "ifname", "swp1", "")),
        }
    )
    assert cables(fabric_in(parsed)) == [("leaf1", 1, "node1", 0)]


def test_a_device_that_some_neighbours_name_in_short_and_some_in_full_is_one() -> None:
    parsed = site(
        {
            "node1": neighbours(("eth0", "leaf1", "ifname", "swp1", "")),
            "node2": neighbours(("eth0", "leaf1.cluster.local", "ifname", "swp2", "")),
        }
    )
    assert cables(fabric_in(parsed)) == [
        ("leaf1.cluster.local", 1, "node1", 0),
        ("leaf1.cluster.local", 2, "node2", 0),
    ]


def test_two_devices_with_one_short_name_stay_apart_and_a_file_that_could_be_of_either_has_a_warning() -> (
    None
):
    spine = neighbours(
        ("swp1", "leaf1.a.local", "ifname", "swp49", ""), ("swp2", "leaf1.b.local", "ifname", "swp49", "")
    )
    parsed = site({"spine1": spine, "leaf1": neighbours(("swp1", "node1", "ifname", "eth0", ""))})
    assert cables(fabric_in(parsed)) == [
        ("leaf1", 1, "node1", 0),
        ("leaf1.a.local", 49, "spine1", 1),
        ("leaf1.b.local", 49, "spine1", 2),
    ]
    assert parsed.warnings[0].startswith(
        "no neighbour reports the device leaf1, and several devices have this name"
    )
    by_cables = site({"spine1": spine, "leaf1": neighbours(("swp49", "spine1", "ifname", "swp2", ""))})
    assert cables(fabric_in(by_cables)) == [
        ("leaf1.a.local", 49, "spine1", 1),
        ("leaf1.b.local", 49, "spine1", 2),
    ]


def test_addresses_are_not_shortened() -> None:
    parsed = site({"10.0.0.1": neighbours(("swp1", "10.0.0.2", "ifname", "swp1", ""))})
    assert cables(fabric_in(parsed)) == [("10.0.0.1", 1, "10.0.0.2", 1)]


def test_a_port_reported_by_its_alias_is_the_one_of_the_neighbours_file() -> None:
    parsed = stored("sonic-alias", "leaf301", "spine101", "node1", "node2")
    fabric = fabric_in(parsed)
    assert hosts(fabric) == ["node1", "node2"]
    assert cables(fabric) == [
        ("leaf301", 0, "spine101", 120),
        ("leaf301", 4, "spine101", 124),
        ("leaf301", 8, "node1", -1),
        ("leaf301", 12, "node2", -1),
    ]
    assert parsed.warnings == ()


@pytest.mark.parametrize("name", ["leaf301", "spine101"])
def test_without_the_neighbours_file_an_alias_gives_way_to_the_name_beside_it(name: str) -> None:
    found = {cable for cable in cables(fabric_in(stored("sonic-alias", name))) if cable[2] == "spine101"}
    assert found == {("leaf301", 0, "spine101", 120), ("leaf301", 4, "spine101", 124)}


@pytest.mark.parametrize("kind", ["local", "ifname", "ifalias"])
def test_an_alias_with_an_operators_text_beside_it_is_matched_by_the_other_end(kind: str) -> None:
    leaf = ("Ethernet0", "spine", kind, "etp31", "to leaf"), ("Ethernet4", "spine", kind, "etp32", "to leaf")
    ends = ("Ethernet124", "Ethernet4"), ("Ethernet120", "Ethernet0")
    spine = [(local, "leaf", "ifname", port, "x") for local, port in ends]
    parsed = site({"leaf": neighbours(*leaf), "spine": neighbours(*spine)})
    assert cables(fabric_in(parsed)) == [("leaf", 0, "spine", 120), ("leaf", 4, "spine", 124)]
    assert parsed.warnings[0].startswith("2 cables have no rate")


def test_cables_of_which_both_ends_report_aliases_only_are_joined_in_order_with_a_warning() -> None:
    leaf = ("Ethernet8", "spine", "local", "etp4", "up"), ("Ethernet4", "spine", "local", "etp31", "up")
    ends = ("Ethernet120", "etp2"), ("Ethernet12", "etp3")
    spine = [(local, "leaf", "local", port, "down") for local, port in ends]
    parsed = site({"leaf": neighbours(*leaf), "spine": neighbours(*spine)})
    assert cables(fabric_in(parsed)) == [("leaf", 4, "spine", 120), ("leaf", 8, "spine", 12)]
    assert "2 cables are known by neither port's own name" in parsed.warnings[0]


def test_two_cables_that_each_one_end_alone_reports_are_two() -> None:
    parsed = site(
        {
            "leaf": neighbours(("Ethernet0", "spine", "local", "etp31", "Ethernet120")),
            "spine": neighbours(("Ethernet124", "leaf", "local", "etp2", "Ethernet4")),
        }
    )
    assert cables(fabric_in(parsed)) == [("leaf", 0, "spine", 120), ("leaf", 4, "spine", 124)]
    assert parsed.warnings[0].startswith("2 cables are reported by one end only")


def test_a_hosts_description_that_is_no_name_of_a_port_does_not_make_it_a_switch() -> None:
    station = neighbours(("swp1", "node1", "mac", "0c:42:a1:00:00:01", "embedded LLDP agent 1"))
    assert hosts(fabric_in(site({"leaf1": station}))) == ["node1"]
