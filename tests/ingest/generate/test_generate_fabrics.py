"""Fabrics by formula: counts, diameters and mean distances are those of closed forms and of the papers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

from ingest.generate.dragonfly import dragonfly
from ingest.generate.fat_trees import (
    director_tree,
    extended_generalised_fat_tree,
    juropa_like,
    k_ary_n_tree,
    ranger_like,
    three_level,
)
from ingest.generate.irregular import autonet, irregular
from ingest.generate.percs import GIB, percs
from ingest.generate.tianhe3 import tianhe3
from ingest.generate.tori import hypercube, mesh, torus
from registry.errors import InvalidValue
from registry.model import Fabric, Floats, Longs


def adjacency(fabric: Fabric) -> csr_array:
    return csr_array(
        (np.ones(len(fabric.neighbour)), fabric.neighbour, fabric.indptr), shape=(len(fabric),) * 2
    )


def host_distances(fabric: Fabric, first: int | None = None) -> Floats:
    """Links between hosts, from the first few of them or all."""
    hosts = fabric.hosts
    distances = shortest_path(adjacency(fabric), unweighted=True, indices=hosts[:first])
    return np.asarray(distances[:, hosts])


def mean_distance(distances: Floats) -> float:
    """Of two different hosts."""
    return float(distances.sum() / (distances.size - len(distances)))


def symmetric(fabric: Fabric) -> bool:
    rows = {
        (a, b, c)
        for a, b, c in zip(
            fabric.links.source.tolist(),
            fabric.links.target.tolist(),
            fabric.links.capacity.tolist(),
            strict=True,
        )
    }
    return all((b, a, c) in rows for a, b, c in rows)


def degrees(fabric: Fabric, kind: Longs) -> Counter[tuple[int, int]]:
    """How many of the vertices have how many hosts and switches as neighbours."""
    host = np.isin(np.arange(len(fabric)), fabric.hosts)
    found: Counter[tuple[int, int]] = Counter()
    for vertex in kind.tolist():
        near = fabric.neighbour[fabric.indptr[vertex] : fabric.indptr[vertex + 1]]
        found[int(host[near].sum()), int((~host[near]).sum())] += 1
    return found


MACHINES: dict[str, Callable[[], Fabric]] = {
    "torus": lambda: torus((4, 3, 2)),
    "mesh": lambda: mesh((3, 4)),
    "hypercube": lambda: hypercube(4),
    "percs": lambda: percs(5),
    "xgft": lambda: extended_generalised_fat_tree((3, 2, 2), (1, 2, 3), cables=(1, 2, 1)),
    "director tree": lambda: director_tree(50, 4, 2, 4, ports=8, cables=1),
    "juropa": juropa_like,
    "ranger": ranger_like,
    "dragonfly": lambda: dragonfly(4, 2, 2),
    "tianhe3": lambda: tianhe3(2, 3, chips=5),
    "irregular": irregular,
    "autonet": autonet,
}


@pytest.mark.parametrize("name", MACHINES)
def test_links_go_both_ways_and_join_all_hosts(name: str) -> None:
    fabric = MACHINES[name]()
    assert symmetric(fabric)
    assert connected_components(adjacency(fabric), directed=False)[0] == 1
    assert bool((fabric.slots[fabric.hosts] == 1).all())


@pytest.mark.parametrize("name", MACHINES)
def test_one_call_gives_the_same_fabric_twice(name: str) -> None:
    one, other = MACHINES[name](), MACHINES[name]()
    assert one.names == other.names
    assert np.array_equal(one.links.source, other.links.source)
    assert np.array_equal(one.links.target, other.links.target)
    assert np.array_equal(one.links.capacity, other.links.capacity)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.booleans())
def test_a_torus_is_the_product_of_cycles_and_a_mesh_of_paths(sides: list[int], wraps: bool) -> None:
    fabric = torus(sides, wraps=wraps)
    graph = nx.grid_graph(dim=sides[::-1], periodic=wraps)
    if len(sides) == 1:
        graph = nx.relabel_nodes(graph, lambda node: (node,))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    assert fabric.coordinates is not None
    point = [tuple(place) for place in fabric.coordinates.tolist()]
    edges = {(point[a], point[b]) for a, b in zip(fabric.links.source, fabric.links.target, strict=True)}
    assert edges == {pair for a, b in graph.edges for pair in ((a, b), (b, a))}
    assert point == sorted(point)


@pytest.mark.parametrize(
    ("sides", "diameter"), [((12, 12, 12), 18), ((8, 8, 8), 12), ((4, 4), 4), ((5, 3), 3)]
)
def test_distances_on_a_torus_follow_the_closed_form(sides: tuple[int, ...], diameter: int) -> None:
    distances = host_distances(torus(sides))
    nodes = np.prod(sides)
    expected = sum((k // 2) * ((k + 1) // 2) / k for k in sides) * nodes / (nodes - 1)
    assert mean_distance(distances) == pytest.approx(expected)
    assert distances.max() == diameter


def test_the_mean_distance_of_the_papers_torus_is_9() -> None:
    """Hoefler and Snir 2011, 5.3.1: average dilation 9.00 of the initial order."""
    assert mean_distance(host_distances(torus((12, 12, 12)))) == pytest.approx(9.0052, abs=1e-4)


def test_capacities_of_a_torus_follow_its_dimensions() -> None:
    fabric = torus((3, 4), capacity=(2.0, 5.0))
    assert fabric.coordinates is not None
    moved = fabric.coordinates[fabric.links.source] != fabric.coordinates[fabric.links.target]
    assert np.array_equal(fabric.links.capacity, np.where(moved[:, 0], 2.0, 5.0))


def test_percs_is_the_papers_network() -> None:
    """Hoefler and Snir 2011, 5.3.2: 9,248 nodes; 7 LL, 24 LR and 9 D links of 24, 5, 10 GiB/s; diameter 3."""
    fabric = percs()
    assert len(fabric) == len(fabric.hosts) == 9248
    for capacity, links in ((24 * GIB, 7), (5 * GIB, 24), (10 * GIB, 9)):
        each = np.bincount(fabric.links.source[fabric.links.capacity == capacity], minlength=9248)
        assert bool((each == links).all())
    far = fabric.links.capacity == 10 * GIB
    ends = fabric.links.source[far] // 32, fabric.links.target[far] // 32
    assert len(set(zip(*(end.tolist() for end in ends), strict=True))) == 289 * 288
    assert host_distances(fabric, 20).max() == 3


def test_which_node_hosts_a_d_link_follows_the_seed() -> None:
    one, other, fixed = percs(9, 1, seed=1), percs(9, 1, seed=2), percs(9, 1, hosting="in-order")
    assert not np.array_equal(one.neighbour, other.neighbour)
    far = fixed.links.source // 32 != fixed.links.target // 32
    assert bool((fixed.links.source[far] % 32 < 8).all())


def test_a_k_ary_n_tree_has_the_published_counts() -> None:
    """Petrini and Vanneschi 1997: k^n hosts, n k^(n-1) switches; hosts at most 2n links apart."""
    fabric = k_ary_n_tree(4, 3)
    assert (len(fabric.hosts), len(fabric.switches)) == (64, 48)
    assert host_distances(fabric).max() == 6
    assert fabric.cable_count == 3 * 64


@given(st.data())
def test_an_extended_generalised_fat_tree_has_the_published_counts(data: st.DataObject) -> None:
    """Ohring et al. 1995: prod_{i>l} m_i prod_{i<=l} w_i vertices on level l, each m_l below it."""
    below = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    above = data.draw(st.lists(st.integers(1, 3), min_size=len(below), max_size=len(below)))
    fabric = extended_generalised_fat_tree(below, above)
    level = fabric.level
    assert level is not None
    for at in range(len(below) + 1):
        here = np.flatnonzero(level == at)
        assert len(here) == np.prod(below[at:]) * np.prod(above[:at])
        for vertex in here.tolist():
            near = level[fabric.neighbour[fabric.indptr[vertex] : fabric.indptr[vertex + 1]]]
            assert (near == at + 1).sum() == (above[at] if at < len(below) else 0)
            assert (near == at - 1).sum() == (below[at - 1] if at else 0)


def test_hosts_of_a_leaf_follow_one_another() -> None:
    fabric = three_level(3, 4, 5)
    leaf = fabric.neighbour[fabric.indptr[fabric.hosts]]
    assert np.array_equal(leaf - leaf[0], np.arange(60) // 5)
    assert host_distances(fabric).max() == 6


def test_the_large_fat_tree_has_20000_hosts_without_oversubscription() -> None:
    fabric = three_level()
    assert (len(fabric.hosts), len(fabric.switches), fabric.cable_count) == (20_000, 2_400, 60_000)


def test_juropa_like_has_the_papers_hosts_on_chips_of_24_ports() -> None:
    """Hoefler and Snir 2011, 5.4: 3,292 nodes."""
    fabric = juropa_like()
    assert len(fabric.hosts) == 3292
    assert degrees(fabric, fabric.switches[:138]) == {(24, 12): 118, (23, 12): 20}
    ports = np.add.reduceat(fabric.cables, fabric.indptr[:-1])
    assert ports[fabric.switches[138:]].max() == 24
    assert host_distances(fabric, 50).max() == 6


def test_ranger_like_has_the_papers_hosts_below_two_large_switches() -> None:
    """Hoefler and Snir 2011, 5.4: 4,081 nodes."""
    fabric = ranger_like()
    assert (len(fabric.hosts), len(fabric.switches)) == (4081, 341 + 2 * 720)
    ports = np.add.reduceat(fabric.cables, fabric.indptr[:-1])
    assert ports[fabric.switches].max() == 24
    assert bool((ports[np.asarray(fabric.level) == 4] == 24).all())
    assert host_distances(fabric, 50).max() == 8


def test_a_full_dragonfly_joins_any_two_groups_by_one_cable() -> None:
    """Kim et al. 2008: a p (a h + 1) hosts; minimal paths have one global and two local links."""
    fabric = dragonfly(8, 4, 4)
    assert (len(fabric.hosts), len(fabric.switches)) == (1056, 264)
    assert degrees(fabric, fabric.switches) == {(4, 11): 264}
    group = (fabric.neighbour - 1056) // 8
    of = (np.repeat(np.arange(len(fabric)), np.diff(fabric.indptr)) - 1056) // 8
    between = fabric.network_link & (of != group)
    assert set(Counter(zip(of[between].tolist(), group[between].tolist(), strict=True)).values()) == {1}
    assert host_distances(fabric, 8).max() == 5


@pytest.mark.parametrize("groups", range(1, 9))
def test_a_smaller_dragonfly_spreads_its_global_ports_evenly(groups: int) -> None:
    fabric = dragonfly(4, 2, 1, groups)
    switch = fabric.hosts.size
    of, to = (fabric.links.source - switch) // 4, (fabric.links.target - switch) // 4
    between = fabric.network_link & (of != to)
    cables = np.zeros((groups, groups), int)
    np.add.at(cables, (of[between], to[between]), 1)
    rounds = 8 // (groups - 1) if groups > 1 else 0
    assert np.array_equal(cables, rounds * (1 - np.eye(groups, dtype=int)))
    assert np.bincount(fabric.links.source[between]).max(initial=0) <= 2


def test_tianhe3_reproduces_the_papers_table_of_hops() -> None:
    """Li et al. 2020, Table 1: switches of a path; 96 nodes a chip in two halves."""
    rows, columns = 3, 4
    hops = host_distances(tianhe3(rows, columns)) - 1
    node = np.arange(rows * columns * 96)
    chip, side = node // 96, node % 96 // 48
    same_chip = chip[:, None] == chip
    aligned = (chip[:, None] // columns == chip // columns) | (chip[:, None] % columns == chip % columns)
    table = np.where(same_chip, 1, np.where(aligned, 3, 5)) + (side[:, None] != side)
    np.fill_diagonal(table, -1)
    assert np.array_equal(hops, table)


def test_an_irregular_network_keeps_the_papers_rules() -> None:
    """Orduna et al. 2004, 5.1: 16 switches of four hosts and three links to others, one a pair."""
    for seed in range(20):
        fabric = irregular(seed=seed)
        assert degrees(fabric, fabric.switches) == {(4, 3): 16}
        assert bool((fabric.cables == 1).all())
        assert len(fabric.hosts) == 64


def test_irregular_networks_differ_by_seed() -> None:
    seen = {irregular(seed=seed).neighbour.tobytes() for seed in range(20)}
    assert len(seen) == 20


def test_the_autonet_example_has_three_links_a_switch() -> None:
    fabric = autonet()
    assert degrees(fabric, fabric.switches) == {(4, 3): 10}


WRONG: dict[str, Callable[[], Fabric]] = {
    "torus.sides": lambda: torus(()),
    "torus.wraps": lambda: torus((3, 3), wraps=(True,)),
    "torus.capacity": lambda: torus((3, 3), capacity=0.0),
    "torus.slots": lambda: torus((3, 3), slots=0),
    "hypercube.dimensions": lambda: hypercube(25),
    "percs.supernodes": lambda: percs(34, 1),
    "percs.hosting": lambda: percs(3, hosting="dense"),
    "percs.capacities": lambda: percs(3, capacities=(1.0, float("nan"), 1.0)),
    "fat_tree.parents": lambda: extended_generalised_fat_tree((2, 2), (1,)),
    "fat_tree.children": lambda: extended_generalised_fat_tree((0,), (1,)),
    "director_tree.lines": lambda: director_tree(50, 4, 2, 5),
    "director_tree.cables": lambda: director_tree(500, 4, 2, 4, ports=8),
    "dragonfly.g": lambda: dragonfly(4, 2, 2, 10),
    "tianhe3.chips": lambda: tianhe3(2, 2, chips=5),
    "irregular.ports": lambda: irregular(ports=6),
    "irregular.links": lambda: irregular(5, links=3),
}


@pytest.mark.parametrize("field", WRONG)
def test_a_parameter_out_of_range_is_named(field: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        WRONG[field]()
    assert caught.value.field == field
