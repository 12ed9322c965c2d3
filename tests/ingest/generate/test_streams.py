"""Stream graphs: the four properties of Ajwani et al. 2013, section 4.2, on any size and seed."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.streams import LogNormal, StreamGraph, stream, stream_graph, stream_weights
from registry.errors import InvalidValue
from registry.model import Longs
from tests.support.inputs import bytes_of

SIZES, SEEDS = st.integers(1, 150), st.integers(0, 1000)


def graph_of(found: StreamGraph) -> nx.DiGraph[Any]:
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_nodes_from(range(len(found.vertex_weight)))
    graph.add_edges_from(zip(found.source.tolist(), found.target.tolist(), strict=True))
    return graph


def degrees(found: StreamGraph) -> tuple[Longs, Longs]:
    count = len(found.vertex_weight)
    return np.bincount(found.target, minlength=count), np.bincount(found.source, minlength=count)


@given(SIZES, SEEDS, st.sampled_from([None, 1, 2, 5]), st.sampled_from([0.0, 0.12, 0.5]))
def test_kernels_are_joined_by_streams_that_lead_onwards_only(
    vertices: int, seed: int, sources: int | None, branching: float
) -> None:
    sources = None if sources is None or vertices <= sources else sources
    found = stream_graph(vertices, seed=seed, sources=sources, branching=branching)
    graph = graph_of(found)
    assert graph.number_of_nodes() == vertices
    assert graph.number_of_edges() == len(found.source)  # none twice
    assert (found.source < found.target).all()
    assert nx.is_weakly_connected(graph)
    if sources is not None:
        assert sum(degree == 0 for _, degree in graph.in_degree) == sources


@given(SIZES, SEEDS)
def test_property_2_no_kernel_both_joins_and_splits(vertices: int, seed: int) -> None:
    reached, left = degrees(stream_graph(vertices, seed=seed))
    assert not ((reached > 1) & (left > 1)).any()


@pytest.mark.parametrize("vertices", [300, 500])
def test_properties_1_2_and_4_edges_are_few_kernels_filters_splits_early_and_joins_late(
    vertices: int,
) -> None:
    """In sum over twenty graphs: of a single one nothing is certain, since it is drawn."""
    drawn = [stream_graph(vertices, seed=seed) for seed in range(20)]
    reached, left = (np.array(ends) for ends in zip(*map(degrees, drawn), strict=True))
    assert sum(len(found.source) for found in drawn) < 20 * 1.25 * vertices
    assert ((reached == 1) & (left == 1)).sum() > 20 * 0.6 * vertices
    third = vertices // 3
    assert (left > 1)[:, :third].sum() > 2 * (reached > 1)[:, :third].sum()
    assert (reached > 1)[:, -third:].sum() > 2 * (left > 1)[:, -third:].sum()


@given(SIZES, SEEDS, st.sampled_from([1, 3]), st.sampled_from([0.12, 0.5]))
def test_property_3_all_paths_between_two_kernels_have_the_same_length(
    vertices: int, seed: int, sources: int, branching: float
) -> None:
    found = stream_graph(vertices, seed=seed, sources=min(sources, max(vertices - 1, 1)), branching=branching)
    graph = graph_of(found)
    order = list(nx.topological_sort(graph))
    for start in range(vertices):
        length = {start: {0}}
        for vertex in order:
            for after in graph.successors(vertex):
                if vertex in length:
                    length.setdefault(after, set()).update(one + 1 for one in length[vertex])
        assert all(len(lengths) == 1 for lengths in length.values())


@given(SIZES, SEEDS)
def test_the_level_is_the_longest_way_from_a_source(vertices: int, seed: int) -> None:
    found = stream_graph(vertices, seed=seed)
    graph = graph_of(found)
    expected = [0] * vertices
    for vertex in nx.topological_sort(graph):
        expected[vertex] = 1 + max((expected[before] for before in graph.predecessors(vertex)), default=-1)
    assert found.level.tolist() == expected


def test_the_structure_follows_the_seed_and_not_the_weights() -> None:
    one, again, other = (stream_graph(200, seed=seed) for seed in (3, 3, 4))
    for name in StreamGraph._fields:
        assert getattr(one, name).tobytes() == getattr(again, name).tobytes()
    assert one.target.tolist() != other.target.tolist()
    flat = stream_graph(200, seed=3, vertex=LogNormal(1.0, 0.0), edge=LogNormal(5.0, 0.0))
    assert one.target.tolist() == flat.target.tolist()
    assert set(flat.vertex_weight.tolist()) == {1.0}
    assert set(flat.edge_weight.tolist()) == {5.0}


def test_weights_have_the_given_mean_and_spread() -> None:
    found = stream_graph(20_000, vertex=LogNormal(3.0, 0.5), edge=LogNormal(2.0, 1.0))
    for weight, mean, spread in ((found.vertex_weight, 3.0, 0.5), (found.edge_weight, 2.0, 1.0)):
        assert weight.mean() == pytest.approx(mean, rel=0.05)
        assert np.log(weight).std() == pytest.approx(spread, rel=0.05)


@given(SIZES, SEEDS, st.floats(0.1, 10.0), st.floats(0.0, 3.0))
def test_a_profile_and_weights_of_one_seed_are_the_graph(
    vertices: int, seed: int, weight: float, spread: float
) -> None:
    found = stream_graph(vertices, vertex=LogNormal(weight, spread), seed=seed)
    profile = stream(vertices, seed=seed)
    assert profile.ranks == vertices
    ends = zip(found.source.tolist(), found.target.tolist(), strict=True)
    assert bytes_of(profile) == dict(zip(ends, found.edge_weight.tolist(), strict=True))
    weights = stream_weights(vertices, vertex_weight=weight, vertex_spread=spread, seed=seed)
    assert weights.tolist() == found.vertex_weight.tolist()


@pytest.mark.parametrize(
    ("vertices", "options", "message"),
    [
        (0, {}, "vertices: is 0"),
        (5, {"sources": 0}, "sources: is 0"),
        (5, {"sources": 6}, "sources: is 6"),
        (5, {"sources": 5}, "sources: is 5, must leave one of 5"),
        (5, {"branching": 0.6}, "branching: is 0.6"),
        (5, {"branching": float("nan")}, "branching: is nan"),
        (5, {"fan": 1}, "fan: is 1"),
        (5, {"edge": LogNormal(0.0, 1.0)}, "edge_weight: is 0.0"),
        (5, {"vertex": LogNormal(-1.0, 1.0)}, "vertex_weight: is -1.0"),
        (5, {"vertex": LogNormal(1.0, 11.0)}, "vertex_spread: is 11.0"),
        (5, {"edge": LogNormal(1.0, -1.0)}, "edge_spread: is -1.0"),
    ],
)
def test_parameters_out_of_range_are_named(vertices: int, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        stream_graph(vertices, **options)


def test_weights_refuse_what_is_none() -> None:
    for field, values in (("vertices", {"vertices": 0}), ("weight", {"vertex_weight": 0.0})):
        with pytest.raises(InvalidValue, match=field):
            stream_weights(**{"vertices": 3} | values)
