from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from dashboard.layouts import FREE, GRID, TREE, cables, layout, natural_order, tiers
from registry.model import Fabric, Links
from tests.infiniband_data import infiniband
from tests.small_fabrics import adapter_fabrics, plain_fabrics


def three_levels(pods: int = 2) -> Fabric:
    """Hosts h, leaves l, pod switches p, core switches c; pods are not in the order of the names."""
    names, arcs = [], []
    for pod in range(pods):
        names += [f"h{pod}{side}" for side in "ab"] + [f"l{pod}a", f"l{pod}b", f"p{pod}a", f"p{pod}b"]
        arcs += [(f"h{pod}{side}", f"l{pod}{side}") for side in "ab"]
        arcs += [(f"l{pod}{low}", f"p{pod}{high}") for low in "ab" for high in "ab"]
        arcs += [(f"p{pod}{side}", f"c{core}") for side in "ab" for core in (0, 1)]
    names += ["c0", "c1"]
    index = {name: v for v, name in enumerate(names)}
    source, target = np.array([(index[a], index[b]) for a, b in arcs]).T
    return Fabric.from_arcs(
        names,
        np.r_[source, target],
        np.r_[target, source],
        1e9,
        slots=[int(name[0] == "h") for name in names],
        forwards=[name[0] != "h" for name in names],
    )


def test_tiers_of_a_tree_count_from_the_hosts() -> None:
    fabric = three_levels()
    expected = {"h": 0, "l": 1, "p": 2, "c": 3}
    assert tiers(fabric).tolist() == [expected[name[0]] for name in fabric.names]


def test_a_spine_with_a_manager_on_it_is_no_leaf() -> None:
    arcs = [(host, 8 + host // 4) for host in range(8)] + [(8, 11), (9, 11), (10, 11)]
    source, target = np.array(arcs).T  # two leaves with four hosts each, a manager (10) on the spine
    fabric = Fabric.from_arcs(
        [f"v{v}" for v in range(12)],
        np.r_[source, target],
        np.r_[target, source],
        1.0,
        slots=[1] * 8 + [0, 0, 1, 0],
        forwards=[False] * 8 + [True, True, False, True],
    )
    assert tiers(fabric).tolist() == [0] * 8 + [1, 1, 0, 2]


def test_a_real_two_level_fabric_is_a_tree() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    named = {name: int(t) for name, t in zip(fabric.names, tiers(fabric), strict=True)}
    assert {t for name, t in named.items() if "IBSPINE" in name} == {2}
    assert {t for name, t in named.items() if "IBLEAF" in name} == {1}


@pytest.mark.parametrize("name", ["torus-4x4x4-dor", "irregular-16sw-updown"])
def test_a_fabric_with_cables_within_a_tier_is_no_tree(name: str) -> None:
    fabric = infiniband(name)
    assert set(tiers(fabric).tolist()) == {0, 1}
    assert layout(fabric).form == FREE


def test_levels_that_the_fabric_tells_are_taken() -> None:
    fabric = three_levels()
    told = np.full(len(fabric), 7, np.int32)
    object.__setattr__(fabric, "level", told)
    assert tiers(fabric) is told


def test_a_tree_is_drawn_in_rows_with_pods_together() -> None:
    fabric = three_levels(pods=3)
    drawn = layout(fabric)
    assert drawn.form == TREE
    assert np.allclose(drawn.y, drawn.tier / 3)
    for tier in range(3):
        members = np.flatnonzero(drawn.tier == tier)
        pods = [fabric.names[v][1] for v in members[np.argsort(drawn.x[members])]]
        assert pods == sorted(pods)
        assert len(set(drawn.x[members])) == len(members)


def test_hosts_of_a_leaf_stand_together_whatever_their_names() -> None:
    source, target = np.array([(0, 4), (1, 5), (2, 4), (3, 5), (4, 6), (5, 6)]).T
    fabric = Fabric.from_arcs(
        ["a", "b", "c", "d", "leaf1", "leaf2", "spine"],
        np.r_[source, target],
        np.r_[target, source],
        1.0,
        slots=[1, 1, 1, 1, 0, 0, 0],
        forwards=[False] * 4 + [True] * 3,
    )
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
def test_any_fabric_is_drawn_inside_the_frame_and_always_alike(fabric: Fabric) -> None:
    first, second = layout(fabric), layout(fabric)
    for drawn in (first, second):
        assert ((drawn.x >= 0) & (drawn.x <= 1) & (drawn.y >= 0) & (drawn.y <= 1)).all()
    assert np.array_equal(first.x, second.x)
    assert np.array_equal(first.y, second.y)


@given(adapter_fabrics())
def test_every_link_belongs_to_one_cable_and_its_directions_are_opposite(fabric: Fabric) -> None:
    links, table = fabric.links, cables(fabric)
    assert sorted([*table["there"], *table["back"]]) == list(range(len(links)))
    there, back = table["there"].to_numpy(), table["back"].to_numpy()
    for name in ("", "_port", "_adapter"):
        source, target = getattr(links, f"source{name}"), getattr(links, f"target{name}")
        assert np.array_equal(source[there], target[back])
        assert np.array_equal(target[there], source[back])
    assert (links.source[there] == table["a"]).all()


@given(plain_fabrics())
def test_a_direction_that_is_missing_is_told(fabric: Fabric) -> None:
    table = cables(fabric)
    rows = np.r_[table["there"], table["back"]]
    assert sorted(rows[rows >= 0]) == list(range(len(fabric.links)))
    assert (table[["there", "back"]].max(axis=1) >= 0).all()


def test_parallel_cables_of_a_source_without_ports_are_kept_apart() -> None:
    links = Links.of([0, 0, 1, 1], [1, 1, 0, 0], 1.0)
    fabric = Fabric.from_arcs(["a", "b"], links.source, links.target, 1.0)
    assert len(cables(fabric)) == 2


def test_numbers_in_names_count_as_numbers() -> None:
    names = ("n10", "n9", "n1b", "n1a", "m")
    assert [names[v] for v in np.argsort(natural_order(names))] == ["m", "n1a", "n1b", "n9", "n10"]
