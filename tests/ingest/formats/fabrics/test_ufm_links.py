"""UFM's links: labels of ports, keys in any order, and links without descriptions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ingest import catalog
from ingest.formats.fabrics import ufm_links
from registry.model import HOST, SWITCH, Fabric
from tests.support.inputs import file, parse, read, refusal

LABELLED = json.loads(read("formats/ufm_links_labels.json"))
FIELDS = ("source_port_node_description", "destination_port_node_description")


def fabric(links: Any) -> Fabric:
    found = parse(ufm_links, json.dumps(links)).fabric
    assert found is not None
    return found


def cables(found: Fabric) -> set[tuple[str, int, str, int]]:
    ends = found.links
    names = found.names
    return {
        (
            names[ends.source[row]],
            int(ends.source_port[row]),
            names[ends.target[row]],
            int(ends.target_port[row]),
        )
        for row in range(len(ends.source))
    }


@pytest.mark.parametrize(
    ("name", "switches"),
    [("labels", ["ndr1", "ndr2", "ndrspine"]), ("cables", ["leaf1", "leaf2", "spine1"])],
)
def test_links_with_labels_or_with_cable_info_first_are_recognised_and_read(
    name: str, switches: list[str]
) -> None:
    content = read(f"formats/ufm_links_{name}.json")
    assert catalog.recognise(file(content).as_group()).name == "ufm-links"
    found = parse(ufm_links, content).fabric
    assert found is not None
    assert sorted(found.names[v] for v in range(len(found.names)) if found.kind[v] == SWITCH) == switches
    assert sum(found.kind == HOST) == 6
    assert len(cables(found)) == 20
    assert (switches[0], 3, "u4", 1) in cables(found)
    assert (switches[1], 32, switches[2], 4) in cables(found)


def test_switches_may_be_described_without_the_label() -> None:
    links = [link | {key: link[key].split(":")[0] for key in FIELDS} for link in LABELLED]
    assert cables(fabric(links)) == cables(fabric(LABELLED))


def test_without_descriptions_labels_tell_switches_from_hosts() -> None:
    bare = [{key: value for key, value in link.items() if key not in FIELDS} for link in LABELLED]
    found = fabric(bare)
    assert (sum(found.kind == SWITCH), sum(found.kind == HOST), len(cables(found))) == (3, 6, 20)
    assert all(name.startswith("guid-") for name in found.names)
    half = [bare[0], *LABELLED[1:]]  # described in another link
    assert cables(fabric(half)) == cables(fabric([LABELLED[0] | {FIELDS[1]: ""}, *LABELLED[1:]]))
    assert "ndr1" in fabric(half).names


def test_the_width_of_older_versions_is_read() -> None:
    link = LABELLED[0]
    assert fabric([link | {"width": "IB_2x"}]).links.capacity.tolist() == [12.5e9] * 2


def test_a_device_of_unknown_kind_is_refused() -> None:
    link = {key: value for key, value in LABELLED[0].items() if key not in FIELDS} | {
        "source_port_dname": "?"
    }
    error = refusal(ufm_links, json.dumps([link]))
    assert "neither source_port_node_description nor source_port_dname" in error.reason
