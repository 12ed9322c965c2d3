"""Large fabrics by rack, pod or group, counted by hand and drawn as lines."""

from __future__ import annotations

import numpy as np

from dashboard.components.fabric_map.picture import Points
from dashboard.figures import colouring
from dashboard.figures.link_map import link_map
from dashboard.layouts.collapsed import PARTS, PODS, RACKS, Collapsed, collapse
from dashboard.layouts.drawing import draw_fabric
from ingest.generate.dragonfly import dragonfly
from ingest.generate.tori import torus
from registry.model import Fabric
from tests.dashboard.test_layouts import three_levels
from tests.support.fat_tree import fat_tree


def collapsed(fabric: Fabric, most: int) -> Collapsed | None:
    drawn = draw_fabric(fabric)
    return collapse(fabric, drawn.layout, drawn.cables, most)


def names(fabric: Fabric, found: Collapsed) -> dict[str, str]:
    """The first device of each device's group, by name."""
    return {fabric.names[v]: fabric.names[first] for v, first in enumerate(found.member.tolist())}


def test_hosts_with_the_same_switches_are_a_rack() -> None:
    fabric = fat_tree(leaves=3, spines=2, hosts=4)
    found = collapsed(fabric, 9)
    assert found is not None
    first = names(fabric, found)
    assert found.what == RACKS
    assert [first[f"node{h:02}"] for h in range(12)] == ["node00"] * 4 + ["node04"] * 4 + ["node08"] * 4
    assert [first[f"leaf{v}"] for v in range(3)] == [f"leaf{v}" for v in range(3)]
    assert sorted(found.names.values()) == [f"node{h:02} + 3 hosts" for h in (0, 4, 8)]
    assert sorted(fabric.names[v] for v in found.devices(fabric.names.index("node05"))) == [
        f"node{h:02}" for h in range(4, 8)
    ]


def test_switches_above_the_leaves_become_one_if_they_have_the_same_ones_below_them() -> None:
    fabric = fat_tree(leaves=3, spines=4, hosts=4, without=(0,))  # spine0 lacks leaf0
    found = collapsed(fabric, 14)
    assert found is not None
    assert (found.what, len(found.names)) == (RACKS, 3)  # 3 racks and 11 uplinks
    fewer = collapsed(fabric, 8)  # 3 racks, 2 uplinks of spine0, 3 of the others together
    assert fewer is not None
    first = names(fabric, fewer)
    assert [first[f"spine{s}"] for s in range(4)] == ["spine0", "spine1", "spine1", "spine1"]
    assert fewer.what == RACKS
    assert fewer.names[fabric.names.index("spine1")] == "spine1 + 2 switches"


def test_what_is_connected_below_the_top_is_a_pod() -> None:
    fabric = three_levels()
    found = collapsed(fabric, 4)  # racks: 2 x (2 + 4 + 4) lines; pods to two cores: 4
    assert found is not None
    first = names(fabric, found)
    assert found.what == PODS
    assert {first[name] for name in ("h0a", "h0b", "l0a", "p0b")} == {"l0a"}
    assert (first["c0"], first["c1"]) == ("c0", "c1")
    assert found.names[fabric.names.index("l0a")] == "l0a + 3 switches, 2 hosts"
    fewer = collapsed(fabric, 3)
    assert fewer is not None
    assert names(fabric, fewer)["c1"] == "c0"  # top switches with the same pods become one
    assert collapsed(fabric, 1) is None
    drawn = draw_fabric(fabric)
    colours = colouring.capacity("t", "l", fabric.links.capacity)
    picture = link_map(fabric, drawn, colours, lines=True, groups=fewer)
    assert isinstance(picture.shape, Points)
    assert [level.text for level in picture.shape.levels] == ["2 pods", "1 switch group"]


def test_groups_of_a_dragonfly_and_nothing_for_a_torus() -> None:
    fabric = dragonfly(4, 2, 2)
    drawn, found = draw_fabric(fabric), collapsed(fabric, 100)
    assert found is not None
    assert found.what == PARTS
    assert drawn.layout.group is not None
    groups = int(drawn.layout.group.max()) + 1
    assert len(set(found.member.tolist())) == groups
    assert collapsed(torus((4, 4)), 100) is None


def test_a_line_between_groups_has_the_busiest_link_of_all_its_cables() -> None:
    fabric = fat_tree(leaves=3, spines=2, hosts=4)
    drawn = draw_fabric(fabric)
    found = collapse(fabric, drawn.layout, drawn.cables, 9)
    values = np.arange(len(fabric.links), dtype=np.float64) + 1
    picture = link_map(fabric, drawn, colouring.load("t", "l", values), lines=True, groups=found)
    assert len(picture.rows) == 9  # three racks and three leaves with two spines
    links = fabric.links
    leaf = fabric.names.index("leaf1")
    mine = [
        row
        for row in range(len(links))
        if leaf in (links.source[row], links.target[row])
        and any(fabric.names[v].startswith("node") for v in (links.source[row], links.target[row]))
    ]
    assert max(mine) in picture.rows
    assert isinstance(picture.shape, Points)
    texts = [level.text for level in picture.shape.levels]
    assert texts == ["3 racks", "3 leaf switches", "2 tier-2 switches"]
    assert sorted(picture.shape.cables.tolist()) == [1] * 6 + [4] * 3
    assert "node04 + 3 hosts" in picture.names
