"""Collectives expanded to edges: volumes that no algorithm goes below, and that data reach every rank."""

from __future__ import annotations

from collections.abc import Callable

import click
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanac.commands.data.ingest import command
from ingest.generate.collectives import ALGORITHMS, OPERATIONS, Edges, binary_tree, expand
from ingest.options import COLLECTIVES
from registry.errors import InvalidValue


def sent(edges: Edges, ranks: int) -> np.ndarray:
    return np.bincount(edges.source, edges.bytes, minlength=ranks)


def test_the_options_of_an_ingest_name_the_same_algorithms() -> None:
    assert COLLECTIVES == ALGORITHMS
    option = next(one for one in command.params if one.name == "collectives")
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == ALGORITHMS


@given(k=st.integers(2, 40), algorithm=st.sampled_from(["ring", "direct", "hierarchical"]))
def test_an_all_reduce_sends_what_the_lower_bound_asks_for(k: int, algorithm: str) -> None:
    """2 S (k-1)/k from each rank; Patarasuk and Yuan 2009."""
    edges = expand("all-reduce", np.arange(k), 1000.0, algorithm=algorithm, domain=1 if k % 2 else 2)
    assert np.allclose(sent(edges, k), 2 * 1000 * (k - 1) / k)


@given(k=st.integers(2, 40), operation=st.sampled_from(["all-gather", "reduce-scatter", "all-to-all"]))
def test_gathers_scatters_and_all_to_alls_send_the_others_parts(k: int, operation: str) -> None:
    for algorithm in ("ring", "direct"):
        edges = expand(operation, np.arange(k), 1000.0, algorithm=algorithm)
        assert np.allclose(sent(edges, k), 1000 * (k - 1) / k)


@given(k=st.integers(2, 64))
def test_recursive_doubling_joins_ranks_that_differ_in_a_bit_and_folds_the_rest(k: int) -> None:
    edges = expand("all-reduce", np.arange(k), 8.0, algorithm="recursive-doubling")
    power = 1 << (k.bit_length() - 1)
    assert len(edges.source) == power * (power.bit_length() - 1) + 2 * (k - power)
    assert set(edges.bytes.tolist()) == {8.0}
    assert nx.is_strongly_connected(nx.DiGraph(list(zip(edges.source, edges.target, strict=True))))
    if k == power:
        step = edges.source ^ edges.target
        assert bool((step & (step - 1) == 0).all())


@given(k=st.integers(2, 200))
def test_a_binary_tree_is_one_and_as_low_as_can_be(k: int) -> None:
    parent = binary_tree(k)
    tree = nx.Graph((child, int(parent[child])) for child in range(1, k))
    assert nx.is_tree(tree)
    assert len(tree) == k
    assert max(np.bincount(parent[1:], minlength=k)) <= 2
    assert max(nx.single_source_shortest_path_length(tree, 0).values()) <= k.bit_length()


@given(k=st.integers(4, 200))
def test_the_second_tree_has_leaves_where_the_first_has_inner_ranks(k: int) -> None:
    """What makes two trees load all ranks alike (Sanders, Speck and Träff 2009)."""
    edges = expand("all-reduce", np.arange(k), 1.0, algorithm="tree")
    assert edges.bytes.sum() == pytest.approx(2 * (k - 1))
    assert sent(edges, k).max() <= 2.5
    if k % 2 == 0:
        parent = binary_tree(k)
        leaves = np.bincount(parent[1:], minlength=k)[1:] == 0
        mirrored = leaves[::-1]
        assert bool((leaves[1:] | mirrored[:-1]).all())


def test_the_hierarchy_rings_inside_then_across_between_ranks_of_one_place() -> None:
    edges = expand("all-reduce", np.arange(8), 800.0, algorithm="hierarchical", domain=4)
    inside = edges.source // 4 == edges.target // 4
    assert edges.bytes[inside].sum() == pytest.approx(2 * 8 * 800 * 3 / 4)
    assert edges.bytes[~inside].sum() == pytest.approx(8 * 2 * 200 * 1 / 2)
    assert bool((edges.source[~inside] % 4 == edges.target[~inside] % 4).all())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("operation", OPERATIONS)
@given(groups=st.integers(1, 3), k=st.integers(1, 9))
def test_groups_keep_to_themselves_and_every_rank_is_reached(
    algorithm: str, operation: str, groups: int, k: int
) -> None:
    members = np.random.default_rng(k).permutation(groups * k).reshape(groups, k)
    domain = groups * k
    edges = expand(operation, members, 4.0, algorithm=algorithm, domain=domain)
    home = np.empty(groups * k, int)
    home[members] = np.arange(groups)[:, None]
    assert bool((home[edges.source] == home[edges.target]).all())
    assert bool((edges.source != edges.target).all())
    graph = nx.DiGraph(list(zip(edges.source.tolist(), edges.target.tolist(), strict=True)))
    for row in members.tolist():
        root = row[0]
        if k == 1:
            assert root not in graph
        elif operation == "broadcast":
            assert nx.descendants(graph, root) == set(row) - {root}
        elif operation == "reduce":
            assert nx.ancestors(graph, root) == set(row) - {root}
        else:
            assert nx.is_strongly_connected(graph.subgraph(row))


def test_names_and_domains_that_do_not_fit_are_refused() -> None:
    faults: list[tuple[Callable[[], object], str]] = [
        (lambda: expand("gossip", [0, 1], 1), "operation"),
        (lambda: expand("all-reduce", [0, 1], 1, algorithm="star"), "algorithm"),
        (lambda: expand("all-reduce", [0, 1], 1, algorithm="hierarchical"), "domain"),
        (lambda: expand("all-reduce", [0, 1, 2], 1, algorithm="hierarchical", domain=2), "domain"),
        (lambda: expand("all-reduce", [0, 1, 2, 4], 1, algorithm="hierarchical", domain=3), "domain"),
    ]
    for fault, field in faults:
        with pytest.raises(InvalidValue) as caught:
            fault()
        assert caught.value.field == f"collective.{field}"
