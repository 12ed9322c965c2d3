"""Fabrics by formula: counts, diameters, mean distances and bisections are those of closed forms and papers.

The bisection is the least capacity, in one direction, of cables whose removal parts the hosts in halves,
wherever switches then stand; every cut in halves is tried.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigvalsh
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, maximum_flow, shortest_path

from ingest.generate.direct import (
    GIB,
    autonet,
    chordal_ring,
    dragonfly,
    field,
    hypercube,
    hyperx,
    irregular,
    mesh,
    percs,
    prime_power,
    slim_fly,
    switch_graph,
    torus,
)
from ingest.generate.trees import (
    GIGABIT,
    RailPods,
    director_tree,
    extended_generalised_fat_tree,
    juropa_like,
    k_ary_n_tree,
    rail_pods,
    ranger_like,
    three_level,
    tianhe3,
)
from registry.errors import InvalidValue
from registry.model import Fabric, Floats, Longs
from tests.support.sure import sure
from tests.support.switch_trees import rows_of


def adjacency(fabric: Fabric) -> csr_array:
    entries = (np.ones(len(fabric.neighbour)), fabric.neighbour, fabric.indptr)
    return csr_array(entries, shape=(len(fabric),) * 2)


def host_distances(fabric: Fabric, first: int | None = None) -> Floats:
    """Links between hosts, from the first few of them or all."""
    hosts = fabric.hosts
    distances = shortest_path(adjacency(fabric), unweighted=True, indices=hosts[:first])
    return np.asarray(distances[:, hosts])


def mean_distance(distances: Floats) -> float:
    """Of two different hosts."""
    return float(distances.sum() / (distances.size - len(distances)))


def symmetric(fabric: Fabric) -> bool:
    rows = set(rows_of(fabric.links, "source", "target", "capacity"))
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
    "torus": lambda: torus((4, 3, 2)), "mesh": lambda: mesh((3, 4)), "hypercube": lambda: hypercube(4),
    "percs": lambda: percs(5),
    "xgft": lambda: extended_generalised_fat_tree((3, 2, 2), (1, 2, 3), cables=(1, 2, 1)),
    "director tree": lambda: director_tree(50, 4, 2, 4, ports=8, cables=1), "juropa": juropa_like,
    "ranger": ranger_like, "dragonfly": lambda: dragonfly(4, 2, 2), "tianhe3": lambda: tianhe3(2, 3, chips=5),
    "irregular": irregular, "autonet": autonet, "hyperx": lambda: hyperx((3, 4), 2, widths=(1, 2)),
    "slim-fly": lambda: slim_fly(4, 1), "rail-pods": lambda: rail_pods(RailPods(2, 2, 4, rails=2, spines=2)),
    "chordal-ring": lambda: chordal_ring(16, 4),
}  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
def test_links_go_both_ways_join_all_hosts_and_are_the_same_twice(name: str) -> None:
    one, other = MACHINES[name](), MACHINES[name]()
    assert symmetric(one)
    assert connected_components(adjacency(one), directed=False)[0] == 1
    assert bool((one.slots[one.hosts] == 1).all())
    assert one.names == other.names
    for column in ("source", "target", "capacity"):
        assert np.array_equal(getattr(one.links, column), getattr(other.links, column))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.booleans())
def test_a_torus_is_the_product_of_cycles_and_a_mesh_of_paths(sides: list[int], wraps: bool) -> None:
    fabric = torus(sides, wraps=wraps)
    graph = nx.grid_graph(dim=sides[::-1], periodic=wraps)
    if len(sides) == 1:
        graph = nx.relabel_nodes(graph, lambda node: (node,))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    point = [tuple(place) for place in sure(fabric.coordinates).tolist()]
    edges = {(point[a], point[b]) for a, b in rows_of(fabric.links, "source", "target")}
    assert edges == {pair for a, b in graph.edges for pair in ((a, b), (b, a))}
    assert point == sorted(point)


def test_the_mean_distance_of_the_papers_torus_is_9() -> None:
    """Hoefler and Snir 2011, 5.3.1: average dilation 9.00 of the initial order."""
    distances = host_distances(torus((12, 12, 12)))
    assert [mean_distance(distances), distances.max()] == pytest.approx([9.0052, 18], abs=1e-4)


def test_capacities_of_tori_hyperx_and_chords_follow_their_dimensions() -> None:
    fabric = torus((3, 4), capacity=(2.0, 5.0))
    place = sure(fabric.coordinates)
    moved = place[fabric.links.source] != place[fabric.links.target]
    assert np.array_equal(fabric.links.capacity, np.where(moved[:, 0], 2.0, 5.0))
    fabric = hyperx((3, 2), 2, widths=(1, 4), capacity=(5.0, 7.0), host_capacity=2.0)
    rates = Counter(fabric.links.capacity.tolist())
    assert rates == {2.0: 2 * 12, 5.0: 2 * 2 * 3, 7.0: 2 * 3 * 4}
    fabric = chordal_ring(8, (2, 4), capacity=(1.0, 2.0, 3.0))
    assert Counter(fabric.links.capacity.tolist()) == {1.0: 16, 2.0: 16, 3.0: 8}


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


@pytest.mark.parametrize(("k", "n"), [(2, 4), (3, 3), (4, 3)])
def test_a_k_ary_n_tree_has_the_published_counts_and_distances(k: int, n: int) -> None:
    """Petrini and Vanneschi 1997: k^n hosts, n k^(n-1) switches; k^l - k^(l-1) hosts are 2 l links away."""
    fabric = k_ary_n_tree(k, n)
    assert (len(fabric.hosts), len(fabric.switches), fabric.cable_count) == (k**n, n * k ** (n - 1), n * k**n)
    away = sorted(2 * level for level in range(1, n + 1) for _ in range(k**level - k ** (level - 1)))
    assert (np.sort(host_distances(fabric)) == [0, *away]).all()


@given(st.data())
def test_an_extended_generalised_fat_tree_has_the_published_counts(data: st.DataObject) -> None:
    """Ohring et al. 1995: prod_{i>l} m_i prod_{i<=l} w_i vertices on level l, each m_l below it."""
    below = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    above = data.draw(st.lists(st.integers(1, 3), min_size=len(below), max_size=len(below)))
    fabric = extended_generalised_fat_tree(below, above)
    level = sure(fabric.level)
    for at in range(len(below) + 1):
        here = np.flatnonzero(level == at)
        assert len(here) == np.prod(below[at:]) * np.prod(above[:at])
        for vertex in here.tolist():
            near = level[fabric.neighbour[fabric.indptr[vertex] : fabric.indptr[vertex + 1]]]
            assert (near == at + 1).sum() == (above[at] if at < len(below) else 0)
            assert (near == at - 1).sum() == (below[at - 1] if at else 0)


def test_hosts_of_a_leaf_follow_one_another_and_the_large_tree_has_20000() -> None:
    fabric = three_level(3, 4, 5)
    leaf = fabric.neighbour[fabric.indptr[fabric.hosts]]
    assert np.array_equal(leaf - leaf[0], np.arange(60) // 5)
    assert host_distances(fabric).max() == 6
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


def test_an_irregular_network_keeps_the_papers_rules_and_follows_the_seed() -> None:
    """Orduna et al. 2004, 5.1: 16 switches of four hosts and three links to others, one a pair."""
    made = [irregular(seed=seed) for seed in range(20)]
    for fabric in made:
        assert degrees(fabric, fabric.switches) == {(4, 3): 16}
        assert bool((fabric.cables == 1).all())
        assert len(fabric.hosts) == 64
    assert len({fabric.neighbour.tobytes() for fabric in made}) == 20
    assert degrees(autonet(), autonet().switches) == {(4, 3): 10}


# HyperX, Slim Fly, pods, chordal rings


def switch_distances(fabric: Fabric) -> Floats:
    """Links between switches, over switches alone."""
    among = adjacency(fabric)[fabric.switches][:, fabric.switches]
    return np.asarray(shortest_path(among, unweighted=True))


UP_TO_3 = st.integers(1, 3)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), UP_TO_3, st.lists(UP_TO_3, min_size=3))
@settings(max_examples=40)
def test_a_hyperx_has_the_published_counts_and_distances(
    sides: list[int], hosts: int, widths: list[int]
) -> None:
    """Ahn et al. 2009, section 3."""
    bundle = widths[: len(sides)]
    fabric = hyperx(sides, hosts, widths=bundle)
    switches = math.prod(sides)
    assert (len(fabric.switches), len(fabric.hosts)) == (switches, switches * hosts)
    between = sum(switches * k * (s - 1) for s, k in zip(sides, bundle, strict=True)) // 2
    assert fabric.cable_count == switches * hosts + between
    found = switch_distances(fabric)
    assert found.max() == sum(side > 1 for side in sides)
    if switches > 1:
        mean = sum(1 - 1 / side for side in sides) * switches / (switches - 1)
        assert mean_distance(found) == pytest.approx(mean)


def test_a_hyperx_of_sides_2_is_a_hypercube_and_one_of_a_single_side_a_complete_graph() -> None:
    cube = nx.Graph(zip(*pairs(hyperx((2, 2, 2, 2), 1)), strict=True))
    assert nx.utils.graphs_equal(cube, nx.Graph(zip(*direct(hypercube(4)), strict=True)))
    line = nx.Graph(zip(*pairs(hyperx((7,), 1)), strict=True))
    assert nx.is_isomorphic(line, nx.complete_graph(7))


def pairs(fabric: Fabric) -> tuple[list[int], list[int]]:
    """Ends of links between switches, counted from the first switch."""
    rows = fabric.network_link
    first = int(fabric.switches[0])
    return (fabric.links.source[rows] - first).tolist(), (fabric.links.target[rows] - first).tolist()


def direct(fabric: Fabric) -> tuple[list[int], list[int]]:
    return fabric.links.source.tolist(), fabric.links.target.tolist()


@pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8, 9, 16, 25, 27])
def test_tables_of_a_finite_field_keep_its_laws(q: int) -> None:
    numbers = field(q)
    some = np.arange(q)
    for table in (numbers.add, numbers.multiply):
        assert np.array_equal(table, table.T)
        left = table[table[:, :, None], some]
        right = table[some[:, None, None], table[None, :, :]]
        assert np.array_equal(left, right)
    assert np.array_equal(numbers.add[0], some)
    assert np.array_equal(numbers.multiply[1], some)
    assert all(sorted(row) == list(range(q)) for row in numbers.add.tolist())
    assert all(sorted(row) == list(range(q)) for row in numbers.multiply[1:].tolist())
    spread = numbers.multiply[some[:, None, None], numbers.add[None, :, :]]
    products = numbers.multiply
    assert np.array_equal(spread, numbers.add[products[:, :, None], products[:, None, :]])


@pytest.mark.parametrize("q", [6, 12, 15, 100])
def test_there_is_no_field_of_a_number_that_is_no_prime_power(q: int) -> None:
    with pytest.raises(InvalidValue, match="no power of a prime"):
        prime_power(q)


@pytest.mark.parametrize(
    ("q", "delta"), [(3, -1), (4, 0), (5, 1), (7, -1), (8, 0), (9, 1), (11, -1), (13, 1)]
)
def test_a_slim_fly_has_the_published_degree_and_diameter_2(q: int, delta: int) -> None:
    """Besta and Hoefler 2014, II-B: 2 q^2 switches of degree (3 q - d) / 2, diameter 2."""
    graph: nx.Graph[int] = nx.Graph(switch_graph(q).tolist())
    degree, switches = (3 * q - delta) // 2, 2 * q * q
    assert len(graph) == switches
    assert {count for _, count in graph.degree} == {degree}
    assert graph.number_of_edges() == len(switch_graph(q)) == switches * degree // 2
    assert nx.diameter(graph) == 2
    mean = (degree + 2 * (switches - 1 - degree)) / (switches - 1)
    assert nx.average_shortest_path_length(graph) == pytest.approx(mean)


def test_a_slim_fly_balances_hosts_and_cables_by_default() -> None:
    """Besta and Hoefler 2014, II-B2: p = ceil(k' / 2); for q = 19: k' = 29, p = 15, 10,830 hosts."""
    fabric = slim_fly(19, capacities=(1.0, 2.0))
    assert (len(fabric.switches), len(fabric.hosts)) == (722, 10830)
    assert fabric.cable_count == 10830 + 722 * 29 // 2
    ends = np.isin(fabric.links.source, fabric.hosts) | np.isin(fabric.links.target, fabric.hosts)
    assert np.array_equal(fabric.links.capacity, np.where(ends, 1.0, 2.0))
    some = fabric.hosts[[0, 1, 15, -1]]
    assert shortest_path(adjacency(fabric), unweighted=True, indices=some)[:, some].max() <= 4
    assert len(slim_fly(4, 1).hosts) == 32
    assert nx.is_isomorphic(nx.Graph(switch_graph(5).tolist()), nx.hoffman_singleton_graph())


def test_accelerators_of_a_rail_pod_meet_on_nvlink_and_on_their_rail() -> None:
    """2 links within a domain and within a rail of a pod, 4 elsewhere."""
    pods, domains, gpus, rails = 2, 3, 8, 4
    fabric = rail_pods(RailPods(pods, domains, gpus, rails=rails, spines=5, cables=2))
    gpu = np.arange(pods * domains * gpus)
    domain, pod, rail = gpu // gpus, gpu // gpus // domains, gpu % gpus % rails
    near = (domain[:, None] == domain) | ((pod[:, None] == pod) & (rail[:, None] == rail))
    expected = np.where(near, 2, 4)
    np.fill_diagonal(expected, 0)
    assert np.array_equal(host_distances(fabric), expected)
    assert (len(fabric.hosts), len(fabric.switches)) == (48, 6 + 8 + 5)
    assert fabric.cable_count == 2 * 48 + pods * rails * 5 * 2
    assert bool((~fabric.forwards[fabric.hosts]).all())


def test_a_rail_pod_is_the_published_scalable_unit_by_default() -> None:
    """DGX SuperPOD: 32 servers of 8 accelerators and rails a unit; NVLink 4 has 450 GB/s each way."""
    fabric = rail_pods(RailPods())
    assert len(fabric.hosts) == 2 * 32 * 8
    leaves = [vertex for vertex in fabric.switches if fabric.names[vertex][:3] in ("p0r", "p1r")]
    assert len(leaves) == 16
    below = fabric.links.target[np.isin(fabric.links.source, leaves)]
    assert np.isin(below, fabric.hosts).sum() == 16 * 32
    assert sorted(set(fabric.links.capacity.tolist())) == [50e9, 450e9] == [400 * GIGABIT, 3600 * GIGABIT]


def test_rails_without_spines_are_joined_by_accelerators_that_relay() -> None:
    fabric = rail_pods(RailPods(1, 4, 2, spines=0, relays=True))
    assert host_distances(fabric).max() == 4
    with pytest.raises(InvalidValue, match=r"rail_pods\.spines"):
        rail_pods(RailPods(1, 4, 2, spines=0))


@given(st.integers(3, 30), st.sets(st.integers(2, 15), max_size=3))
def test_a_chordal_ring_is_the_circulant_graph(nodes: int, lengths: set[int]) -> None:
    chords = sorted(length for length in lengths if 2 * length <= nodes)
    fabric = chordal_ring(nodes, chords)
    graph = nx.Graph(zip(*direct(fabric), strict=True))
    assert nx.utils.graphs_equal(graph, nx.circulant_graph(nodes, [1, *chords]))
    assert fabric.cable_count == graph.number_of_edges()
    assert bool((fabric.cables == 1).all())


def test_distances_on_chordal_rings_are_those_of_the_paper() -> None:
    """Ajwani et al. 2013, Figure 10: mean shortest paths of C(16; 2) to C(16; 7)."""
    means = [mean_distance(host_distances(chordal_ring(16, chord))) for chord in range(2, 8)]
    assert means == pytest.approx([2.4, 2.133, 2.0, 2.133, 1.933, 2.267], abs=5e-4)


WRONG: dict[str, list[Callable[[], object]]] = {
    "torus.sides": [lambda: torus(())],
    "torus.wraps": [lambda: torus((3, 3), wraps=(True,))],
    "torus.capacity": [lambda: torus((3, 3), capacity=0.0)],
    "torus.slots": [lambda: torus((3, 3), slots=0)],
    "hypercube.dimensions": [lambda: hypercube(25)],
    "percs.supernodes": [lambda: percs(34, 1)],
    "percs.hosting": [lambda: percs(3, hosting="dense")],
    "percs.capacities": [lambda: percs(3, capacities=(1.0, float("nan"), 1.0))],
    "fat_tree.parents": [lambda: extended_generalised_fat_tree((2, 2), (1,))],
    "fat_tree.children": [lambda: extended_generalised_fat_tree((0,), (1,))],
    "director_tree.lines": [lambda: director_tree(50, 4, 2, 5)],
    "director_tree.cables": [lambda: director_tree(500, 4, 2, 4, ports=8)],
    "dragonfly.g": [lambda: dragonfly(4, 2, 2, 10)],
    "tianhe3.chips": [lambda: tianhe3(2, 2, chips=5)],
    "irregular.ports": [lambda: irregular(ports=6)],
    "irregular.links": [lambda: irregular(5, links=3)],
    "hyperx.sides": [lambda: hyperx((), 1), lambda: hyperx((0, 2), 1)],
    "hyperx.hosts": [lambda: hyperx((2, 2), 0)],
    "hyperx.widths": [lambda: hyperx((2, 2), 1, widths=(1,)), lambda: hyperx((2, 2), 1, widths=0)],
    "hyperx.capacity": [lambda: hyperx((2, 2), 1, capacity=(1.0,)), lambda: hyperx((2,), 1, capacity=-1.0)],
    "hyperx.host_capacity": [lambda: hyperx((2, 2), 1, host_capacity=float("inf"))],
    "hyperx.slots": [lambda: hyperx((2, 2), 1, slots=0)],
    "slim_fly.q": [lambda: slim_fly(6), lambda: slim_fly(2), lambda: slim_fly(15), lambda: slim_fly(257)],
    "slim_fly.hosts": [lambda: slim_fly(5, 0)],
    "slim_fly.capacities": [lambda: slim_fly(5, capacities=(1.0, 0.0))],
    "rail_pods.pods": [lambda: rail_pods(RailPods(0))],
    "rail_pods.domains": [lambda: rail_pods(RailPods(1, 0))],
    "rail_pods.gpus": [lambda: rail_pods(RailPods(1, 1, 0))],
    "rail_pods.rails": [lambda: RailPods(1, 1, 8, rails=3), lambda: RailPods(1, 1, 8, rails=16)],
    "rail_pods.spines": [lambda: RailPods(2, 1, 2, spines=0, relays=True), lambda: RailPods(spines=-1)],
    "rail_pods.cables": [lambda: rail_pods(RailPods(cables=0))],
    "rail_pods.capacities": [lambda: rail_pods(RailPods(capacities=(1.0, 1.0, float("nan"))))],
    "chordal_ring.nodes": [lambda: chordal_ring(2, ())],
    "chordal_ring.chords": [
        lambda: chordal_ring(9, 5), lambda: chordal_ring(9, 1), lambda: chordal_ring(9, (2, 2)),
    ],
    "chordal_ring.capacity": [lambda: chordal_ring(9, 2, capacity=(1.0, 1.0, 1.0))],
}  # fmt: skip


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in WRONG.items() for call in calls])
def test_a_parameter_out_of_range_is_named(name: str, call: Callable[[], object]) -> None:
    with pytest.raises(InvalidValue) as caught:
        call()
    assert caught.value.field == name


# bisection

ENOUGH = 1 << 20


def bisection(fabric: Fabric) -> float:
    """The least of all cuts in halves, tried one by one."""
    hosts = fabric.hosts
    first, others = int(hosts[0]), hosts[1:].tolist()
    halves = ([first, *rest] for rest in combinations(others, len(hosts) // 2 - 1))
    return min(_cut(fabric, half) for half in halves)


def _cut(fabric: Fabric, half: list[int]) -> float:
    """Least capacity from these hosts to the others; where there are switches, by the flow between them."""
    inside = np.zeros(len(fabric), bool)
    inside[half] = True
    source, target, capacity = fabric.links.source, fabric.links.target, fabric.links.capacity
    if not len(fabric.switches):
        return float(capacity[inside[source] & ~inside[target]].sum())
    n, rest = len(fabric), np.setdiff1d(fabric.hosts, half)
    rows = np.r_[source, np.full(len(half), n), rest]
    columns = np.r_[target, half, np.full(len(rest), n + 1)]
    sizes = np.r_[capacity, np.full(len(half) + len(rest), ENOUGH)].astype(np.int32)
    graph = csr_array(coo_array((sizes, (rows, columns)), shape=(n + 2, n + 2)), dtype=np.int32)
    return float(maximum_flow(graph, n, n + 1).flow_value)


CLOSED_FORMS: dict[str, tuple[Callable[[], Fabric], float]] = {
    # A torus whose longest side k is even: 2 N / k, half of it where there is no way around.
    "torus 4 x 4": (lambda: torus((4, 4)), 8),
    "torus 6 x 2": (lambda: torus((6, 2)), 4),
    "torus 4 x 2 x 2": (lambda: torus((4, 2, 2)), 8),
    "torus 4 x 4 of two capacities": (lambda: torus((4, 4), capacity=(5.0, 1.0)), 8),
    "mesh 4 x 4": (lambda: mesh((4, 4)), 4),
    "mesh 6 x 2": (lambda: mesh((6, 2)), 2),
    # A hypercube of n dimensions: 2^(n-1).
    "hypercube of 4": (lambda: hypercube(4), 8),
    # A tree that is not oversubscribed: every host of a half sends at its full rate.
    "2-ary 3-tree": (lambda: k_ary_n_tree(2, 3), 4),
    "3-ary 2-tree and a half": (lambda: extended_generalised_fat_tree((3, 4), (1, 3)), 6),
    # Oversubscribed m_1 : w_2, so much less.
    "2:1 tree": (lambda: extended_generalised_fat_tree((4, 2), (1, 2)), 2),
    "4:1 tree": (lambda: extended_generalised_fat_tree((4, 2), (1, 1)), 1),
    "4:3 tree, parallel cables": (lambda: extended_generalised_fat_tree((4, 2), (1, 1), cables=(1, 3)), 3),
    # Ahn et al. 2009, 3.2: the least of P K_i S_i / 4.
    "hyperx 4 x 3": (lambda: hyperx((4, 3), 1, host_capacity=99.0), 12),
    "hyperx 4 x 2": (lambda: hyperx((4, 2), 1, host_capacity=99.0), 4),
    "hyperx 4 x 2, wider": (lambda: hyperx((4, 2), 1, widths=(1, 3), host_capacity=99.0), 8),
    "complete graph of 8": (lambda: hyperx((8,), 1, host_capacity=99.0), 16),
    # Groups kept whole, one cable between any two: (g / 2)^2 (Kim et al. 2008).
    "dragonfly": (lambda: dragonfly(3, 1, 1, 4), 4),
    # Pods kept whole: pods / 2 * rails * spines * cables.
    "rail pods": (lambda: rail_pods(RailPods(2, 1, 4, rails=2, spines=1, capacities=(9.0, 9.0, 1.0))), 2),
    "wider rail pods": (
        lambda: rail_pods(RailPods(2, 1, 4, rails=2, spines=2, cables=2, capacities=(9.0, 9.0, 1.0))), 8,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_no_cut_in_halves_is_less_than_the_closed_form(name: str) -> None:
    build, expected = CLOSED_FORMS[name]
    assert bisection(build()) == expected


@pytest.mark.parametrize(
    ("chord", "width", "least"), [(2, 6, 3), (3, 8, 6), (4, 8, 8), (5, 8, 6), (6, 10, 8), (7, 8, 5)]
)
def test_bisections_of_chordal_rings_are_those_of_the_paper(chord: int, width: int, least: int) -> None:
    """Ajwani et al. 2013, section 5: exhaustive widths, and bounds ceil(n a / 4) of the connectivity a."""
    fabric = chordal_ring(16, chord)
    adjacency = np.zeros((16, 16))
    adjacency[fabric.links.source, fabric.links.target] = 1.0
    connectivity = eigvalsh(np.diag(adjacency.sum(axis=1)) - adjacency)[1]
    angles = 2 * math.pi * np.arange(1, 16) / 16
    assert connectivity == pytest.approx(min(4 - 2 * np.cos(angles) - 2 * np.cos(chord * angles)))
    assert math.ceil(16 * connectivity / 4 - 1e-9) == least
    assert _exhaustive(adjacency) == width


def _exhaustive(adjacency: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> int:
    """All halves of 16 nodes at once."""
    sides = np.array([[0, *rest] for rest in combinations(range(1, 16), 7)])
    inside = np.zeros((len(sides), 16))
    np.put_along_axis(inside, sides, 1.0, axis=1)
    return int(((inside @ adjacency) * (1 - inside)).sum(axis=1).min())
