"""Bisection and mean distance of generated fabrics: every cut in halves is tried, and closed forms agree.

The bisection is the least capacity, in one direction, of cables whose removal parts the hosts in halves,
wherever switches then stand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import eigvalsh
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_flow, shortest_path

from ingest.generate.dragonfly import dragonfly
from ingest.generate.fat_trees import extended_generalised_fat_tree, k_ary_n_tree
from ingest.generate.hyperx import hyperx
from ingest.generate.percs import GIB, percs
from ingest.generate.pods import RailPods, rail_pods
from ingest.generate.tori import chordal_ring, hypercube, mesh, torus
from registry.model import Fabric, Floats

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
    formula = min(
        4 - 2 * math.cos(2 * math.pi * k / 16) - 2 * math.cos(2 * math.pi * k * chord / 16)
        for k in range(1, 16)
    )
    assert connectivity == pytest.approx(formula)
    assert math.ceil(16 * connectivity / 4 - 1e-9) == least
    assert _exhaustive(adjacency) == width


def _exhaustive(adjacency: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> int:
    """All halves of 16 nodes at once."""
    sides = np.array([[0, *rest] for rest in combinations(range(1, 16), 7)])
    inside = np.zeros((len(sides), 16))
    np.put_along_axis(inside, sides, 1.0, axis=1)
    return int(((inside @ adjacency) * (1 - inside)).sum(axis=1).min())


@pytest.mark.parametrize("supernodes", [2, 6, 10])
def test_halves_of_percs_are_joined_by_a_d_link_for_each_pair_of_supernodes(supernodes: int) -> None:
    """Hoefler and Snir 2011, 5.3.2: one D link joins any two supernodes, so (s / 2)^2 halves of them."""
    fabric = percs(supernodes)
    upper = np.arange(len(fabric)) // 32 >= supernodes // 2
    across = upper[fabric.links.source] & ~upper[fabric.links.target]
    assert across.sum() == (supernodes // 2) ** 2
    assert bool((fabric.links.capacity[across] == 10 * GIB).all())


def host_distances(fabric: Fabric) -> Floats:
    """Links between hosts."""
    size = (len(fabric), len(fabric))
    graph = csr_array((np.ones(len(fabric.neighbour)), fabric.neighbour, fabric.indptr), shape=size)
    return np.asarray(shortest_path(graph, unweighted=True, indices=fabric.hosts)[:, fabric.hosts])


def mean_distance(fabric: Fabric) -> float:
    """Of two different hosts, in links."""
    found = host_distances(fabric)
    return float(found.sum() / (len(found) * (len(found) - 1)))


@pytest.mark.parametrize("sides", [(7,), (4, 4), (5, 3, 2)])
def test_distances_on_a_mesh_follow_the_closed_form(sides: tuple[int, ...]) -> None:
    """Sum over dimensions of (k^2 - 1) / (3 k), a node and itself counted too."""
    nodes = math.prod(sides)
    expected = sum((k * k - 1) / (3 * k) for k in sides) * nodes / (nodes - 1)
    assert mean_distance(mesh(sides)) == pytest.approx(expected)
    assert host_distances(mesh(sides)).max() == sum(k - 1 for k in sides)


def test_the_mean_distance_of_a_hypercube_is_half_its_dimensions() -> None:
    assert mean_distance(hypercube(6)) == pytest.approx(3 * 64 / 63)
    assert host_distances(hypercube(6)).max() == 6


@pytest.mark.parametrize(("k", "n"), [(2, 4), (3, 3), (4, 2)])
def test_distances_on_a_k_ary_n_tree_follow_the_closed_form(k: int, n: int) -> None:
    """k^l - k^(l-1) hosts are 2 l links away: those below the same switch of level l first."""
    total = sum(2 * level * (k**level - k ** (level - 1)) for level in range(1, n + 1))
    assert mean_distance(k_ary_n_tree(k, n)) == pytest.approx(total / (k**n - 1))
