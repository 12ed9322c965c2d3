"""Starts laid over the hosts by their distances: along the hierarchy, along a torus's axes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from ingest.generate.fat_trees import extended_generalised_fat_tree
from ingest.generate.stencils import shuffled, stencil
from mapping.placement.partition.bisection import weighted_graph
from mapping.placement.problem.problem import Problem
from mapping.placement.strategies import digit_permutation, layout, multilevel, spectral
from registry.model import Allocation, Fabric, Profile
from tests.support.search_problems import problem_on, problems, torus8


@pytest.mark.parametrize("strategy", [digit_permutation, layout, multilevel, spectral])
@given(problem=problems())
def test_any_problem_gets_a_valid_and_repeatable_placement(strategy: object, problem: Problem) -> None:
    place_ranks = strategy.place_ranks  # type: ignore[attr-defined]
    found = place_ranks(problem, np.random.default_rng(0))
    assert (np.bincount(found, minlength=problem.hosts) <= problem.allocation.slots).all()
    assert found.tobytes() == place_ranks(problem, np.random.default_rng(0)).tobytes()


def test_parts_have_exactly_the_room_of_branches_roomiest_first() -> None:
    assert multilevel.fill(np.array([2, 4, 3, 4]), 9).tolist() == [0, 4, 1, 4]
    assert multilevel.fill(np.array([2, 4]), 6).tolist() == [2, 4]


def leaves_of_four() -> tuple[Fabric, Allocation]:
    """Sixteen hosts on four leaf switches under one, listed in a mixed order."""
    leaf = 16 + np.arange(16) // 4
    low, high = np.r_[np.arange(16), 16, 17, 18, 19], np.r_[leaf, 20, 20, 20, 20]
    fabric = Fabric.from_arcs(
        [f"v{i:02}" for i in range(21)], np.r_[low, high], np.r_[high, low], 1.0,
        slots=[1] * 16 + [0] * 5, forwards=[False] * 16 + [True] * 5,
    )  # fmt: skip
    return fabric, Allocation.of(fabric, np.random.default_rng(1).permutation(16).tolist())


def test_cliques_are_cut_apart_at_leaf_switches() -> None:
    fabric, allocation = leaves_of_four()
    group = np.random.default_rng(2).permutation(np.repeat(np.arange(4), 4))
    a, b = np.nonzero((group[:, None] == group) & ~np.eye(16, dtype=bool))
    profile = Profile.from_edges(a, b, np.ones(len(a)), ranks=16)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    found = multilevel.place_ranks(problem, np.random.default_rng(0))
    assert problem.hop_bytes(found) == 2.0 * len(a)


def test_on_a_torus_smooth_vectors_beat_a_shuffled_order() -> None:
    fabric, profile, allocation = torus8()
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    found = spectral.place_ranks(problem, np.random.default_rng(0))
    shuffled = np.random.default_rng(0).permutation(problem.slot_host)
    assert problem.hop_bytes(found) < 0.6 * problem.hop_bytes(shuffled)


@pytest.mark.parametrize("partners", [4, 45])
def test_eigenvectors_have_the_smallest_eigenvalues_whether_ranks_have_few_or_many_partners(
    partners: int,
) -> None:
    ranks, generator = 120, np.random.default_rng(3)
    a = np.repeat(np.arange(ranks), partners)
    b = (a + 1 + generator.integers(0, ranks - 1, len(a))) % ranks
    graph = weighted_graph(a, b, generator.uniform(1, 9, len(a)), ranks)
    assert (graph.nnz > spectral.MANY_PARTNERS * ranks) is (partners == 45)
    degree = np.asarray(graph.sum(axis=1), float).reshape(-1)
    laplacian = np.eye(ranks) - graph.toarray() / np.sqrt(np.outer(degree, degree))
    vectors = spectral.laplacian_eigenvectors(graph, 3, generator) * np.sqrt(degree)[:, None]
    found = [float(vector @ laplacian @ vector) for vector in vectors.T]
    assert found == pytest.approx(np.linalg.eigvalsh(laplacian)[1:4], rel=1e-6)


@pytest.mark.parametrize(
    ("sides", "leaves", "borders"),
    [((12, 8), 6, 2 * 8 + 12), ((12, 12), 9, 4 * 12)],  # blocks of 4 x 4; of a square the axes must be found
)
def test_a_shuffled_grid_is_cut_into_straight_blocks(
    sides: tuple[int, int], leaves: int, borders: int
) -> None:
    fabric = extended_generalised_fat_tree((16, leaves), (1, 4))
    profile = shuffled(stencil(sides, 5), 1)
    problem = problem_on(fabric, profile, Allocation.of(fabric, fabric.hosts.tolist()), "shortest-paths")
    leaf = spectral.place_ranks(problem, np.random.default_rng(0)) // 16
    cut = np.count_nonzero(leaf[problem.source] != leaf[problem.target])
    assert cut == 2 * borders  # both directions
