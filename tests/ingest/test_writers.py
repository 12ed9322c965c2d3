"""Files of InfiniBand tools that are written, of generated fabrics, too."""

from __future__ import annotations

import io

import numpy as np
import pytest

from ingest import catalog
from ingest.generate.catalog import FABRICS, PROFILES, make
from ingest.writers import (
    HOST_GUID,
    SWITCH_GUID,
    as_fabric,
    director_tree,
    fat_tree,
    formats_of,
    forwarding_tables,
    ibnetdiscover_text,
    npz_bytes,
    opensm_lfts_blocks,
    opensm_lfts_text,
    three_level_tree,
    weights_csv,
    write,
)
from registry.errors import InvalidValue
from registry.model import Fabric, Profile
from tests.support.inputs import file

TREE = fat_tree(2, 1, 1, lmc=1)
"""A spine switch, two leaves and a host on each."""


def test_devices_have_guids_names_ports_and_aligned_lids() -> None:
    spine, *leaves = TREE[:3]
    assert [device.description for device in TREE[:4]] == ["spine01", "leaf01", "leaf02", "node0001 mlx5_0"]
    assert [device.guid for device in TREE[:3]] == [SWITCH_GUID + 0x100 * k for k in (1, 2, 3)]
    assert [device.lid for device in TREE[:3]] == [1, 2, 3]
    assert [(port.peer, port.peer_port) for port in spine.ports.values()] == [
        (leaf.guid, 2) for leaf in leaves
    ]
    adapters = [(port.guid, port.lid, port.lmc) for port in (device.ports[1] for device in TREE[3:])]
    assert adapters == [(HOST_GUID + 0x101, 4, 1), (HOST_GUID + 0x201, 6, 1)]


def test_cables_directors_and_pods_have_the_given_sizes_and_ports() -> None:
    spine, leaf, *_ = fat_tree(1, 2, 1, cables=3)
    assert [port.peer_port for port in spine.ports.values()] == [3, 4, 5]
    assert len(leaf.ports) == 5
    tree = director_tree(4, 2, 2, line_chips=2, spine_chips=1)
    assert [len(device.ports) for device in tree if device.kind == "S"] == [2, 3, 3, 2, 3, 3, 4, 4, 4, 4]
    assert sum(device.kind == "H" for device in tree) == 8
    pods = three_level_tree(3, 2, 4)
    assert sum(device.kind == "H" for device in pods) == 24
    assert [len(device.ports) for device in pods[:4]] == [3] * 4


def test_the_scan_of_a_leaf_lists_its_host_and_its_spine() -> None:
    text = ibnetdiscover_text(TREE)
    assert text.startswith("#\n# Topology file: generated on Thu Jan 01 00:00:00 2026\n#\n")
    assert (
        'Switch\t2 "S-0002c90000100200"\t\t# "leaf01" enhanced port 0 lid 2 lmc 0\n'
        '[1]\t"H-0002c90000f00100"[1](2c90000f00101) \t\t# "node0001 mlx5_0" lid 4 4xHDR\n'
        '[2]\t"S-0002c90000100100"[1]\t\t# "spine01" lid 1 4xHDR\n'
    ) in text


def test_tables_lead_to_every_lid() -> None:
    tables = forwarding_tables(TREE)
    assert tables.switch_guid.tolist() == [device.guid for device in TREE[:3]]
    # By switch and LID 1 .. 7: spine, two leaves, and two LIDs of each host.
    rows = [[0, 1, 2, 1, 1, 2, 2], [2, 0, 2, 1, 1, 2, 2], [2, 2, 0, 2, 2, 1, 1]]
    assert tables.ports[:, 1:].tolist() == rows
    text = opensm_lfts_text(TREE, tables)
    assert text.startswith("Unicast lids [0-7] of switch Lid 1 guid 0x0002c90000100100 ('spine01'):\n")
    assert "0x0006 002 # Channel Adapter portguid 0x0002c90000f00201: 'node0002 mlx5_0'\n" in text
    assert text == "".join(opensm_lfts_blocks(TREE, tables))


def test_equal_paths_are_used_in_turn_by_lid() -> None:
    devices = fat_tree(2, 4, 2)
    tables = forwarding_tables(devices)
    other = [device.ports[1].lid for device in devices[-4:]]
    used = tables.ports[2, other].tolist()
    assert sorted(used) == [5, 5, 6, 6]


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("width", {"width": 0}),
        ("width", {"speed": "fast"}),
        ("lmc", {"lmc": 8}),
        ("hosts", {"hosts_per_leaf": 0}),
    ],
)
def test_a_parameter_out_of_range_is_named(field: str, values: dict[str, int | str]) -> None:
    with pytest.raises(InvalidValue, match=f"infiniband.{field}"):
        fat_tree(**({"leaves": 2, "hosts_per_leaf": 1, "spines": 1} | values))  # type: ignore[arg-type]


PAIR = Profile.from_edges([2, 0], [0, 2], [8, 2.5], ranks=4, messages=[2, 1])


def test_profiles_and_weights_are_written_as_rows_or_arrays() -> None:
    assert write(PAIR) == b"# ranks: 4\nsrc,dst,bytes,messages\n0,2,2.5,1\n2,0,8,2\n"
    assert list(formats_of(PAIR)) == ["edge-csv", "npz"]
    found = np.load(io.BytesIO(npz_bytes(PAIR)))
    assert {name: found[name].tolist() for name in found.files} == {
        "src": [0, 2], "dst": [2, 0], "bytes": [2.5, 8.0], "messages": [1, 2], "ranks": 4,
    }  # fmt: skip
    weights = np.array([1.0, 0.1])
    assert write(weights).decode() == weights_csv(weights) == "rank,weight\n0,1.0\n1,0.1\n"
    with pytest.raises(InvalidValue, match="must be one of edge-csv, npz"):
        write(make(PROFILES.find("ring"), {"ranks": "4"}), "xml")


def test_a_fabric_is_made_of_text_and_written() -> None:
    made = make(FABRICS.find("torus"), {"sides": "4x4", "capacity": "1,2.5", "slots": "2"})
    assert isinstance(made, Fabric)
    assert as_fabric(made) is made
    assert len(made.hosts) == 16
    assert set(made.links.capacity.tolist()) == {1.0, 2.5}
    assert write(made).startswith(b'{"directed"')


def test_devices_of_a_scan_are_a_fabric_and_a_scan() -> None:
    made = make(FABRICS.find("infiniband-fat-tree"), {"leaves": "2", "hosts_per_leaf": "3", "spines": "2"})
    fabric = as_fabric(made)
    assert (len(fabric.hosts), len(fabric.switches)) == (6, 4)
    assert catalog.recognise(file(write(made)).as_group()).name == "ibnetdiscover"
