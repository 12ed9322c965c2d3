"""Trees for TreeMatch, VieM and SharedMap, and groups for Mt-KaHyPar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from bench.quality.peers import child, tree_tools
from bench.quality.peers.files import guest_graph, write_metis
from bench.quality.peers.hierarchies import halved, hierarchies, host_groups
from bench.quality.peers.process import Answer
from bench.support.instances import Contest, Shape
from ingest.generate.fat_trees import extended_generalised_fat_tree
from ingest.generate.tori import torus
from tests.bench.quality.test_peers import ring_on


def test_a_grid_is_cut_along_its_longest_side() -> None:
    # 4 x 6: columns in two halves of three, rows in two of two, the three columns, the two rows.
    arities, node = halved((4, 6))
    assert arities == (2, 2, 3, 2)
    assert node[:6].tolist() == [0, 6, 1, 7, 2, 8]
    assert node[[6, 12, 18]].tolist() == [12, 3, 15]
    assert sorted(node.tolist()) == list(range(24))


def test_a_level_costs_the_mean_distance_that_it_adds() -> None:
    fabric = torus((4,))
    (tree, in_order) = hierarchies(given := ring_on(fabric, 4, shape=Shape(sides=(4,))), given.allocation)
    # Neighbours are 1 hop apart; of two halves of a ring of four, two pairs are 2 and two 1 hop apart.
    assert tree.tleaf == in_order.tleaf == "tleaf 2 2 2 2 4\n"
    assert tree.inside_out == ("2:2", "4:6")
    assert tree.largest_distance == 6


def test_slots_are_the_leaves_of_their_host() -> None:
    given = ring_on(torus((2, 3), slots=2), 12, slots=2, shape=Shape(sides=(2, 3)))
    first, second = hierarchies(given, given.allocation)
    assert (first.kind, first.arities) == ("sides halved", (3, 2, 2))
    assert first.slot.tolist() == [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]
    assert (second.kind, second.arities) == ("hosts in order", (2, 3, 2))
    assert second.slot.tolist() == list(range(12))


def test_groups_of_a_machine_are_its_tree() -> None:
    fabric = extended_generalised_fat_tree((2, 3), (1, 1))
    given = ring_on(fabric, 6, shape=Shape(groups=(2,)))
    (tree,) = hierarchies(given, given.allocation)
    assert (tree.kind, tree.arities, tree.costs) == ("groups", (3, 2), (8, 8))


def test_uneven_slots_are_taken_in_order() -> None:
    given = ring_on(torus((4,), slots=2), 6, slots=[2, 2, 1, 1])
    (tree,) = hierarchies(given, given.allocation)
    assert (tree.kind, tree.arities) == ("slots in order", (2, 3))
    assert tree.slot.tolist() == list(range(6))


def test_a_metis_graph_numbers_vertices_from_one(tmp_path: Path) -> None:
    given = ring_on(torus((4,)), 3)
    write_metis(tmp_path / "g", guest_graph(given))
    assert (tmp_path / "g").read_text() == "3 3 001\n2 8 3 8\n1 8 3 8\n1 8 2 8\n"


def treematch(leaves: Sequence[int]) -> Callable[[list[str], float], Answer]:
    """Return what takes the place of a process of TreeMatch."""
    trees = iter(("tleaf 2 3 2 2 4\n", "tleaf 2 2 3 3 4\n"))

    def mapped(command: list[str], limit: float) -> Answer:
        _, graph, tree, out = map(Path, command)
        head, *rows = graph.read_text().splitlines()
        assert int(head.split()[0]) == len(rows) == 6, head
        assert tree.read_text() == next(trees)
        out.write_text("".join(f"{leaf}\n" for leaf in leaves))
        return Answer(tool="")

    return mapped


@pytest.fixture
def only_treematch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_tools, "program", lambda tool: tool if tool == "TreeMatch" else None)


@pytest.mark.usefixtures("only_treematch")
def test_leaves_become_slots_and_free_slots_are_ranks_without_traffic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_tools, "run", treematch(range(5, -1, -1)))
    given = ring_on(torus((2, 3)), 5, shape=Shape(sides=(2, 3)))
    first, _ = tree_tools.tree_answers(given, given.allocation, ", all slots", tmp_path, 30.0)
    assert (first.tool, first.why) == ("TreeMatch (sides halved, all slots)", "")
    assert first.slot_of_rank is not None
    # Leaves are slots 0 3 1 4 2 5; rank r is on leaf 5 - r.
    assert first.slot_of_rank.tolist() == [5, 2, 4, 1, 3]


def test_a_program_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREEMATCH", sys.executable)
    assert tree_tools.program("TreeMatch") == sys.executable


@pytest.mark.usefixtures("only_treematch")
def test_a_prime_number_of_slots_has_no_groups(tmp_path: Path) -> None:
    given = ring_on(torus((5,)), 5)
    (answer,) = tree_tools.tree_answers(given, given.allocation, "", tmp_path, 30.0)
    assert (answer.tool, answer.why) == ("TreeMatch", "5 slots form no equal groups")


@pytest.mark.usefixtures("only_treematch")
def test_an_answer_for_other_leaves_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_tools, "run", treematch([0, 1]))
    given = ring_on(torus((2, 3)), 6, shape=Shape(sides=(2, 3)))
    answer, *_ = tree_tools.tree_answers(given, given.allocation, "", tmp_path, 30.0)
    assert answer.why == "no readable answer: 2 places of 6"


def test_weights_are_scaled_until_their_sum_can_be_counted() -> None:
    given = ring_on(torus((4,)), 3)
    (tree,) = hierarchies(given, given.allocation)
    heavy = csr_array(([1 << 30, 1, 1 << 30, 1], [1, 2, 0, 0], [0, 2, 3, 4]), shape=(3, 3))
    scaled = tree_tools._scaled(heavy, tree)
    assert scaled.shape == (4, 4)
    assert scaled.indptr.tolist() == [0, 2, 3, 4, 4]
    assert tree_tools.LARGEST_SUM * 0.99 < scaled.data.sum() * tree.largest_distance <= tree_tools.LARGEST_SUM
    assert scaled.data.min() == 1


def test_hosts_are_grouped_into_at_most_so_many_compact_parts() -> None:
    given = ring_on(torus((4, 8)), 32, shape=Shape(sides=(4, 8)))
    # Cut to 4 x 4, 2 x 4, 2 x 2 and 1 x 2: sixteen groups of two hosts side by side.
    (groups,) = host_groups(given, given.allocation, 16)
    assert len(np.unique(groups)) == 16
    assert np.array_equal(groups.reshape(4, 8)[:, ::2], groups.reshape(4, 8)[:, 1::2])
    assert host_groups(given, given.allocation, 4).shape == (2, 32)


def test_the_distance_of_groups_is_the_mean_of_their_hosts() -> None:
    distances = np.array([[0.0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]])
    means = child._means(distances, np.array([0, 0, 1, 1]))
    assert means[0, 1] == means[1, 0] == 8  # (2 + 3 + 1 + 2) / 4 hops, four units each


class Steiner:
    """Stands for Mt-KaHyPar: keeps what it is asked, fills block after block; other calls return itself."""

    PresetType = SimpleNamespace(DEFAULT="default")

    def __init__(self, surplus: int = 0) -> None:
        self.asked: list[tuple[int, list[int]]] = []
        self.surplus = surplus

    def __getattr__(self, name: str) -> Callable[..., Steiner]:
        return lambda *given: self

    def set_individual_target_block_weights(self, weights: list[int]) -> None:
        self.weights = weights

    def create_graph(self, context: object, ranks: int, *rest: object) -> Steiner:
        self.ranks = ranks
        return self

    def create_target_graph(self, context: object, blocks: int, links: int, pairs: object, cost: Any) -> None:
        self.asked.append((self.ranks, cost))

    def get_partition(self) -> Any:
        filled = np.repeat(np.arange(len(self.weights)), self.weights)[: self.ranks]
        return np.r_[filled[: self.surplus] * 0, filled][: self.ranks]


def request(path: Path, given: Contest, groups: list[list[int]]) -> None:
    graph = guest_graph(given)
    hops = np.abs(np.arange(len(given.allocation))[:, None] - np.arange(len(given.allocation)))
    np.savez(
        path / "request.npz",
        indptr=graph.indptr,
        indices=graph.indices,
        weights=graph.data,
        distances=hops.astype(float),
        slots=given.allocation.slots,
        groups=np.array(groups, np.int64).reshape(-1, len(given.allocation)),
    )


def test_ranks_are_mapped_onto_groups_and_then_onto_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Steiner()
    monkeypatch.setattr(child, "import_module", lambda name: tool)
    request(tmp_path, ring_on(torus((4,), slots=2), 8, slots=2), [[1, 1, 0, 0]])
    # The first group in number is the second half of the hosts.
    assert child.mtkahypar(tmp_path, "DEFAULT").tolist() == [2, 2, 3, 3, 0, 0, 1, 1]
    assert tool.asked == [(8, [8]), (4, [4]), (4, [4])]


def test_a_group_with_too_many_ranks_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "import_module", lambda name: Steiner(surplus=1))
    request(tmp_path, ring_on(torus((4,)), 4), [[0, 0, 1, 1]])
    with pytest.raises(SystemExit, match="more ranks on a group of hosts than it has slots"):
        child.mtkahypar(tmp_path, "DEFAULT")
