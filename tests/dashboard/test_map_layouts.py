"""Drawings of fabrics: places, cells, groups; large ones by rack, pod or group, counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from dashboard.map.cells import cells
from dashboard.map.layout import (
    FREE,
    GRID,
    GROUPS,
    TREE,
    Cables,
    cables,
    groups,
    natural_order,
    repeat_number,
    switch_of,
)
from dashboard.map.layouts import (
    PARTS,
    PODS,
    RACKS,
    Collapsed,
    Drawing,
    collapse,
    draw_fabric,
    free,
    hosts_below,
    layout,
    redrawn,
    tiers,
)
from dashboard.map.picture import Points
from dashboard.shared import link_map as colouring
from dashboard.shared.link_map import link_map
from ingest.generate.direct import dragonfly, hypercube, hyperx, mesh, percs, torus
from ingest.generate.trees import extended_generalised_fat_tree
from registry.model import Fabric
from tests.support.fat_tree import fat_tree
from tests.support.infiniband_data import infiniband
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics


def wired(names: Sequence[str], ends: Sequence[tuple[str, str]], hosts: str = "h") -> Fabric:
    """A fabric of cables between devices; hosts have a name that begins with one of these letters."""
    index = {name: v for v, name in enumerate(names)}
    source, target = np.array([(index[a], index[b]) for a, b in ends]).T
    ends_of, is_host = (np.r_[source, target], np.r_[target, source]), [name[0] in hosts for name in names]
    return Fabric.from_arcs(names, *ends_of, 1e9, slots=np.array(is_host, int), forwards=np.invert(is_host))


def three_levels(pods: int = 2) -> Fabric:
    """Hosts h, leaves l, pod switches p, core switches c; pods are not in the order of the names."""
    names, ends = [], []
    for pod in range(pods):
        names += [f"h{pod}{side}" for side in "ab"] + [f"l{pod}a", f"l{pod}b", f"p{pod}a", f"p{pod}b"]
        ends += [(f"h{pod}{side}", f"l{pod}{side}") for side in "ab"]
        ends += [(f"l{pod}{low}", f"p{pod}{high}") for low in "ab" for high in "ab"]
        ends += [(f"p{pod}{side}", f"c{core}") for side in "ab" for core in (0, 1)]
    return wired([*names, "c0", "c1"], ends)


def test_tiers_of_a_tree_count_from_the_hosts_and_a_manager_makes_no_leaf() -> None:
    fabric = three_levels()
    assert tiers(fabric).tolist() == ["hlpc".index(name[0]) for name in fabric.names]
    told = np.full(len(fabric), 7, np.int32)
    object.__setattr__(fabric, "level", told)  # levels that the fabric has are used
    assert tiers(fabric) is told
    hosts = [f"h{host}" for host in range(8)]
    ends = [(host, f"l{k // 4}") for k, host in enumerate(hosts)]
    ends += [(below, "s") for below in ("l0", "l1", "manager")]
    fabric = wired([*hosts, "l0", "l1", "manager", "s"], ends, "hm")
    assert tiers(fabric).tolist() == [0] * 8 + [1, 1, 0, 2]
    fabric = infiniband("ndr-dgx-minhop")
    named = {name: int(t) for name, t in zip(fabric.names, tiers(fabric), strict=True)}
    assert {t for name, t in named.items() if "IBSPINE" in name} == {2}
    assert {t for name, t in named.items() if "IBLEAF" in name} == {1}


@pytest.mark.parametrize(("name", "form"), [("torus-4x4x4-dor", GRID), ("irregular-16sw-updown", FREE)])
def test_a_fabric_with_cables_within_a_tier_is_no_tree(name: str, form: str) -> None:
    fabric = infiniband(name)
    assert set(tiers(fabric).tolist()) == {0, 1}
    assert layout(fabric).form == form


def test_a_tree_is_drawn_in_rows_with_pods_and_hosts_of_a_leaf_together() -> None:
    fabric = three_levels(pods=3)
    drawn = layout(fabric)
    assert drawn.form == TREE
    assert np.allclose(drawn.y, drawn.tier / 3)
    for tier in range(3):
        members = np.flatnonzero(drawn.tier == tier)
        pods = [fabric.names[v][1] for v in members[np.argsort(drawn.x[members])]]
        assert pods == sorted(pods)
        assert len(set(drawn.x[members])) == len(members)
    ends = [("a", "leaf1"), ("b", "leaf2"), ("c", "leaf1"), ("d", "leaf2"), ("leaf1", "s"), ("leaf2", "s")]
    fabric = wired(["a", "b", "c", "d", "leaf1", "leaf2", "s"], ends, "abcd")
    x = layout(fabric).x
    assert [fabric.names[v] for v in np.argsort(x[:4])] in (["a", "c", "b", "d"], ["b", "d", "a", "c"])


def test_a_torus_with_coordinates_is_drawn_in_slices() -> None:
    size = (2, 3, 2)
    spots = np.array(list(np.ndindex(*size)), np.int32)
    fabric = Fabric.from_arcs([str(tuple(s)) for s in spots.tolist()], [0], [1], 1.0)
    object.__setattr__(fabric, "coordinates", spots)
    drawn = layout(fabric)
    assert drawn.form == GRID
    assert len(set(zip(drawn.x.tolist(), drawn.y.tolist(), strict=True))) == len(spots)
    assert float(drawn.x[spots[:, 2] == 0].max()) < float(drawn.x[spots[:, 2] == 1].min())


@given(plain_fabrics())
def test_any_fabric_is_drawn_inside_the_frame_always_alike_with_one_cell_for_each_cable(
    fabric: Fabric,
) -> None:
    first, second = layout(fabric), layout(fabric)
    assert ((first.x >= 0) & (first.x <= 1) & (first.y >= 0) & (first.y <= 1)).all()
    assert np.array_equal(first.x, second.x)
    assert np.array_equal(first.y, second.y)
    found = cables(fabric)
    rows = np.r_[found.there, found.back]
    assert sorted(rows[rows >= 0]) == list(range(len(fabric.links)))
    assert (np.maximum(found.there, found.back) >= 0).all()
    check_cells(draw_fabric(fabric))


@given(adapter_fabrics())
def test_every_link_belongs_to_one_cable_and_its_directions_are_opposite(fabric: Fabric) -> None:
    links, found = fabric.links, cables(fabric)
    assert sorted([*found.there, *found.back]) == list(range(len(links)))
    for name in ("", "_port", "_adapter"):
        source, target = getattr(links, f"source{name}"), getattr(links, f"target{name}")
        assert np.array_equal(source[found.there], target[found.back])
        assert np.array_equal(target[found.there], source[found.back])
    assert (links.source[found.there] == found.a).all()
    assert (links.target[found.there] == found.b).all()


def test_numbers_in_names_count_as_numbers_and_equal_rows_and_cables_in_turn() -> None:
    assert len(cables(Fabric.from_arcs(["a", "b"], [0, 0, 1, 1], [1, 1, 0, 0], 1.0))) == 2
    names = ("n10", "n9", "n1b", "n1a", "m")
    assert [names[v] for v in np.argsort(natural_order(names))] == ["m", "n1a", "n1b", "n9", "n10"]
    one, other = np.array([1, 1, 2, 1, 2]), np.array([0, 0, 5, 3, 5])
    assert repeat_number(one, other).tolist() == [0, 1, 0, 0, 1]
    assert repeat_number(one).tolist() == [0, 1, 0, 2, 1]


def check_cells(drawing: Drawing) -> None:
    found = drawing.cells
    assert len(set(zip(found.panel, found.row, found.column, strict=True))) == len(drawing.cables)
    for number, panel in enumerate(found.panels):
        mine = found.panel == number
        assert mine.any()
        assert int(found.row[mine].max()) == panel.rows - 1
        assert int(found.column[mine].max()) == panel.columns - 1
        assert len(panel.row_names) in (0, panel.rows)


MACHINES = {
    "tree": lambda: extended_generalised_fat_tree((4, 3, 2), (1, 2, 2)),
    "torus": lambda: torus((3, 4, 5)),
    "mesh": lambda: mesh((4, 5)),
    "dragonfly": lambda: dragonfly(4, 2, 2),
    "sparse dragonfly": lambda: dragonfly(6, 2, 1, g=7),
    "percs": lambda: percs(4),
    "hyperx": lambda: hyperx((4, 4), 1),
}


@pytest.mark.parametrize("name", MACHINES)
def test_every_cable_of_a_machine_is_one_cell(name: str) -> None:
    check_cells(draw_fabric(MACHINES[name]()))


@pytest.mark.parametrize("name", ["ndr-dgx-minhop", "mixed-speeds-oversubscribed"])
def test_a_row_of_a_trees_cells_is_a_switch_where_it_is_named(name: str) -> None:
    fabric = infiniband(name)
    drawing = draw_fabric(fabric)
    a, b = drawing.cables.a, drawing.cables.b
    for number, panel in enumerate(drawing.cells.panels):
        mine = np.flatnonzero(drawing.cells.panel == number)
        for cable in mine if panel.row_names else []:
            ends = {fabric.names[a[cable]], fabric.names[b[cable]]}
            assert panel.row_names[drawing.cells.row[cable]] in ends


def test_a_column_of_leaf_to_spine_is_one_leaf_where_all_are_joined() -> None:
    fabric = extended_generalised_fat_tree((3, 8), (1, 4), cables=(1, 2))
    drawing = draw_fabric(fabric)
    panel = drawing.cells.panels[0]
    assert (panel.rows, panel.columns) == (4, 16)
    mine = drawing.cells.panel == 0
    leaf = np.where(drawing.layout.tier[drawing.cables.a] == 1, drawing.cables.a, drawing.cables.b)[mine]
    leaf_of_column = dict(zip(drawing.cells.column[mine].tolist(), leaf.tolist(), strict=True))
    assert all(leaf_of_column[c] == v for c, v in zip(drawing.cells.column[mine], leaf, strict=True))


def test_a_torus_is_found_without_coordinates_and_each_slice_is_a_panel() -> None:
    drawing = draw_fabric(torus((4, 3, 5)))
    assert drawing.layout.form == GRID
    assert drawing.layout.sizes is not None
    assert len(drawing.cells.panels) == int(np.prod(drawing.layout.sizes.tolist()[2:]))
    assert {panel.block for panel in drawing.cells.panels} == {3}


@pytest.mark.parametrize("name", ["dragonfly", "sparse dragonfly"])
@pytest.mark.parametrize("seed", [0, 1])
def test_groups_of_a_dragonfly_are_found_whatever_the_names(name: str, seed: int) -> None:
    fabric = MACHINES[name]()
    truth = {v: n[1:].split("s")[0] for v, n in enumerate(fabric.names) if n.startswith("g")}
    shuffled = np.random.default_rng(seed).permutation(len(fabric))
    renamed = replace(fabric, names=tuple(f"v{number}" for number in shuffled), level=None)
    found = groups(renamed)
    assert found is not None
    pairs = {(truth[v], int(found[v])) for v in truth}
    assert len(pairs) == len(set(truth.values())) == len(set(found.tolist()))
    assert layout(renamed).form == GROUPS
    hosts = np.flatnonzero(~fabric.forwards)
    assert np.array_equal(found[hosts], found[switch_of(renamed)[hosts]])


def test_groups_of_a_dragonfly_plus_are_its_two_level_trees() -> None:
    groups_, leaves, spines = 5, 3, 4
    names, ends = [], []
    for g in range(groups_):
        names += [f"{kind}{g}.{i}" for kind in "hl" for i in range(leaves)]
        names += [f"s{g}.{i}" for i in range(spines)]
        ends += [(f"h{g}.{i}", f"l{g}.{i}") for i in range(leaves)]
        ends += [(f"l{g}.{i}", f"s{g}.{j}") for i in range(leaves) for j in range(spines)]
        ends += [(f"s{g}.{j}", f"s{(g + j + 1) % groups_}.{spines - 1 - j}") for j in range(spines // 2)]
    fabric = wired(names, ends)
    found = groups(fabric)
    assert found is not None
    assert all(int(found[v]) == int(name[1:].split(".")[0]) for v, name in enumerate(names))


@pytest.mark.parametrize("name", ["tree", "torus", "mesh", "hyperx"])
def test_what_is_no_dragonfly_has_no_groups(name: str) -> None:
    assert groups(MACHINES[name]()) is None
    assert groups(hypercube(5)) is None


def test_a_free_layout_that_is_given_is_taken() -> None:
    fabric = infiniband("irregular-16sw-updown")
    x, y = free(fabric)
    asked = []

    def stored(given: Fabric) -> tuple[np.ndarray, np.ndarray]:
        asked.append(given)
        return y, x

    assert np.array_equal(layout(fabric, stored).x, y)
    assert asked == [fabric]
    layout(three_levels(), stored)
    assert asked == [fabric]


def test_a_large_graph_is_spread_without_springs_and_always_alike() -> None:
    ring = np.arange(2000)
    source, target = np.r_[ring, ring], np.r_[(ring + 1) % 2000, (ring + 700) % 2000]
    both = np.r_[source, target], np.r_[target, source]
    fabric = Fabric.from_arcs([f"v{v}" for v in ring], *both, 1.0, slots=0)
    one, other = free(fabric), free(fabric)
    assert np.array_equal(one, other)
    assert len(set(zip(*np.round(one, 9).tolist(), strict=True))) == 2000


def test_a_changed_fabric_is_drawn_at_the_same_places() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    drawing = draw_fabric(fabric)
    less = replace(fabric, links=fabric.links.take(np.arange(10, len(fabric.links))), tables=None)
    again = redrawn(drawing, less)
    assert again.layout is drawing.layout
    assert again.cells.panels == cells(less, drawing.layout, cables(less)).panels


def test_hosts_below_a_switch_are_those_that_ways_down_reach() -> None:
    fabric = three_levels(pods=2)
    tier = tiers(fabric)
    below = {
        name: {fabric.names[h] for h in hosts_below(fabric, tier, v)} for v, name in enumerate(fabric.names)
    }
    assert below["l0a"] == {"h0a"}
    assert below["p1b"] == {"h1a", "h1b"}
    assert below["c0"] == {"h0a", "h0b", "h1a", "h1b"}
    assert below["h0b"] == {"h0b"}


def collapsed(fabric: Fabric, most: int) -> Collapsed:
    drawn = draw_fabric(fabric)
    found = collapse(fabric, drawn.layout, drawn.cables, most)
    assert found is not None
    return found


def names(fabric: Fabric, found: Collapsed) -> dict[str, str]:
    """The first device of each device's group, by name."""
    return {fabric.names[v]: fabric.names[first] for v, first in enumerate(found.member.tolist())}


def test_hosts_with_the_same_switches_are_a_rack() -> None:
    fabric = fat_tree(leaves=3, spines=2, hosts=4)
    found = collapsed(fabric, 9)
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
    assert (found.what, len(found.names)) == (RACKS, 3)  # 3 racks and 11 uplinks
    fewer = collapsed(fabric, 8)  # 3 racks, 2 uplinks of spine0, 3 of the others together
    first = names(fabric, fewer)
    assert [first[f"spine{s}"] for s in range(4)] == ["spine0", "spine1", "spine1", "spine1"]
    assert (fewer.what, fewer.names[fabric.names.index("spine1")]) == (RACKS, "spine1 + 2 switches")


def test_what_is_connected_below_the_top_is_a_pod() -> None:
    fabric = three_levels()
    found = collapsed(fabric, 4)  # racks: 2 x (2 + 4 + 4) lines; pods to two cores: 4
    first = names(fabric, found)
    assert found.what == PODS
    assert {first[name] for name in ("h0a", "h0b", "l0a", "p0b")} == {"l0a"}
    assert (first["c0"], first["c1"]) == ("c0", "c1")
    assert found.names[fabric.names.index("l0a")] == "l0a + 3 switches, 2 hosts"
    fewer = collapsed(fabric, 3)
    assert names(fabric, fewer)["c1"] == "c0"  # top switches with the same pods become one
    drawn = draw_fabric(fabric)
    assert collapse(fabric, drawn.layout, drawn.cables, 1) is None
    colours = colouring.capacity("t", "l", fabric.links.capacity)
    picture = link_map(fabric, drawn, colours, lines=True, groups=fewer)
    assert isinstance(picture.shape, Points)
    assert [level.text for level in picture.shape.levels] == ["2 pods", "1 switch group"]


def test_groups_of_a_dragonfly_and_nothing_for_a_torus() -> None:
    fabric = dragonfly(4, 2, 2)
    drawn, found = draw_fabric(fabric), collapsed(fabric, 100)
    assert found.what == PARTS
    assert drawn.layout.group is not None
    groups = int(drawn.layout.group.max()) + 1
    assert len(set(found.member.tolist())) == groups
    drawn = draw_fabric(torus((4, 4)))
    assert collapse(torus((4, 4)), drawn.layout, drawn.cables, 100) is None


def test_a_line_between_groups_has_the_busiest_link_of_all_its_cables() -> None:
    fabric = fat_tree(leaves=3, spines=2, hosts=4)
    drawn = draw_fabric(fabric)
    found = collapse(fabric, drawn.layout, drawn.cables, 9)
    values = np.arange(len(fabric.links), dtype=np.float64) + 1
    picture = link_map(fabric, drawn, colouring.load("t", "l", values), lines=True, groups=found)
    assert len(picture.rows) == 9  # three racks and three leaves with two spines
    links = fabric.links
    leaf = fabric.names.index("leaf1")
    at_leaf = (links.source == leaf) | (links.target == leaf)
    of_hosts = (fabric.slots[links.source] > 0) | (fabric.slots[links.target] > 0)
    assert np.flatnonzero(at_leaf & of_hosts).max() in picture.rows
    assert isinstance(picture.shape, Points)
    texts = [level.text for level in picture.shape.levels]
    assert texts == ["3 racks", "3 leaf switches", "2 tier-2 switches"]
    assert sorted(picture.shape.cables.tolist()) == [1] * 6 + [4] * 3
    assert "node04 + 3 hosts" in picture.names


def test_cables_of_two_groups_are_one_line_whatever_their_direction() -> None:
    found = Collapsed(what=RACKS, member=np.array([2, 1, 2, 1]), names={}, has_hosts=np.zeros(4, bool))
    ends = {"a": np.array([0, 1, 2, 0]), "b": np.array([1, 2, 3, 2])}  # the last is within a group
    lines = found.cables(Cables(**ends, there=np.arange(4), back=np.arange(4) + 10))
    assert [lines.a.tolist(), lines.b.tolist()] == [[1, 1, 1], [2, 2, 2]]
    assert [lines.there.tolist(), lines.back.tolist()] == [[10, 1, 12], [0, 11, 2]]


def test_groups_without_a_line_between_them_are_no_picture() -> None:
    fabric = fat_tree(leaves=1, spines=1, hosts=2)
    drawn = draw_fabric(fabric)
    found = collapse(fabric, drawn.layout, drawn.cables, 9)
    assert found is None or len(found.cables(drawn.cables).a)
    one = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1e9)
    layout = replace(draw_fabric(one).layout, form=GROUPS, group=np.zeros(2, np.int32))
    assert collapse(one, layout, draw_fabric(one).cables, 9) is None
