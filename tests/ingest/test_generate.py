"""Streams of messages and those of collectives.

Generators by name: every line of the catalog leads to a function whose parameters can be given as text.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Literal

import click
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanac.commands.generate import OWN
from almanac.commands.ingest import command
from ingest import catalog
from ingest.generate.catalog import (
    FABRICS,
    GENERATORS,
    PROFILES,
    REQUIRED,
    WEIGHTS,
    Generator,
    dataclass_of,
    make,
    parameters_of,
)
from ingest.generate.collectives import ALGORITHMS, OPERATIONS, Edges, binary_tree, expand
from ingest.generate.streams import LogNormal, StreamGraph, stream, stream_graph, stream_weights
from ingest.options import COLLECTIVES, Options
from ingest.writers import formats_of, write
from registry.errors import InvalidValue, UnknownName
from registry.model import Longs, Profile
from tests.support import paths
from tests.support.inputs import bytes_of, file

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
    if algorithm != "hierarchical":
        assert edges.messages.tolist() == [2 * (k - 1) * k // len(edges.source)] * len(edges.source)


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


DOCUMENTED = (paths.ROOT / "docs" / "reference" / "generators.md").read_text()
SMALL: dict[str, dict[str, str]] = {
    "nas-bt": {"ranks": "9", "points": "12", "steps": "1"},
    "nas-sp": {"ranks": "9", "points": "12", "steps": "1"},
    "nas-cg": {"ranks": "8", "rows": "1400", "iterations": "1"},
    "nas-lu": {"ranks": "6", "grid": "3x2", "points": "12", "steps": "1"},
    "nas-mg": {"ranks": "8", "points": "16", "cycles": "1"},
    "nas-ft": {"ranks": "8", "points": "16,16,16", "steps": "1"},
    "nas-is": {"ranks": "8", "keys": "1024"},
    "nas-ep": {"ranks": "7"},
    "lulesh": {"side": "2"},
    "hpcg": {"grid": "2x2x1", "points": "16x16x8"},
    "sweep3d": {"grid": "3,2"},
    "snap": {"grid": "3x2"},
    "stencil": {"sides": "3x3", "points": "5", "periodic": "yes"},
    "ring": {"ranks": "5", "both_ways": "true"},
    "all-to-all": {"ranks": "5"},
    "random": {"ranks": "9", "partners": "2", "skew": "0.5"},
    "stream": {"vertices": "40", "sources": "2"},
    "collective": {"operation": "all-reduce", "ranks": "6", "algorithm": "tree"},
    "kkt": {"ranks": "4", "side": "4"},
    "crankshaft": {"ranks": "4", "nodes": "600"},
    "ai-layout": {"tensor": "2", "data": "3", "tensor_bytes": "5", "data_bytes": "7",
        "order": "data,tensor,context,pipeline"},
}  # fmt: skip


@pytest.mark.parametrize("generator", PROFILES, ids=lambda generator: generator.name)
def test_every_profile_is_made_of_text_and_read_back_from_each_format(generator: Generator) -> None:
    made = make(generator, SMALL[generator.name])
    assert isinstance(made, Profile)
    assert made.pairs
    for format in formats_of(made):
        content = file(write(made, format), "made")
        known = catalog.recognise(content.as_group())
        assert known.name == format
        (back,) = known.parse([content], Options()).profiles
        assert back.ranks == made.ranks
        columns = ("indptr", "partner", "bytes", "messages")
        assert all((getattr(back, name) == getattr(made, name)).all() for name in columns)


@pytest.mark.parametrize(
    "generator",
    list(chain.from_iterable(GENERATORS.values())),
    ids=lambda generator: f"{generator.kind}-{generator.name}",
)
def test_every_line_leads_to_a_function_whose_parameters_can_be_given_as_text(generator: Generator) -> None:
    assert generator.kind in {"fabric", "profile", "weights"}
    parameters = generator.parameters()
    assert all(parameter.type for parameter in parameters)
    assert not {parameter.name for parameter in parameters} & set(OWN)
    assert generator.explained()
    assert not generator.about.endswith(".")
    assert generator.kind != "profile" or f"`{generator.name}`" in DOCUMENTED
    function = generator.load()
    names = inspect.signature(dataclass_of(function) or function).parameters
    assert [parameter.name for parameter in parameters] == list(names)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("stencil", {"sides": "3x3"}, "stencil.points: is required"),
        ("stencil", {"sides": "3xz", "points": "5"}, "sides: is 'z', not a whole number"),
        ("stencil", {"sides": "3x3", "points": "5", "periodic": "maybe"}, "yes or no"),
        ("stencil", {"sides": "3x3", "points": "5", "bytes": "inf"}, "finite"),
        ("snap", {"grid": "3"}, "needs 2 values"),
        ("collective", {"operation": "gossip", "ranks": "4"}, "must be one of all-reduce"),
    ],
)
def test_values_that_cannot_be_read_are_named(name: str, values: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        make(PROFILES.find(name), values)


def test_names_that_are_not_there_get_the_closest_ones_of_three_tables() -> None:
    with pytest.raises(UnknownName, match="closest: stencil"):
        PROFILES.find("stencl")
    with pytest.raises(UnknownName, match="closest: points"):
        make(PROFILES.find("stencil"), {"point": "5"})
    assert dict(GENERATORS) == {"fabric": FABRICS, "profile": PROFILES, "weights": WEIGHTS}
    for kind, table in GENERATORS.items():
        assert {generator.kind for generator in table} == {kind}


def sample(
    one: int,
    two: float = 2.5,
    *,
    three: bool | Sequence[bool] = True,
    four: Literal["a", "b"] = "a",
    five: tuple[int, ...] | None = None,
) -> None:
    """A function.

    More about it.

    Args:
        one, two: First. Second sentence.
        four: Two
            lines; k .. n.

    Raises:
        InvalidValue
    """


def test_parameters_are_read_from_signature_and_docstring() -> None:
    found = {parameter.name: parameter for parameter in parameters_of(sample)}
    assert found["one"].default is REQUIRED
    assert found["one"].about == found["two"].about == "First"
    assert found["four"].about == "Two lines; k .. n"
    types = ["whole number", "number", "yes or no or yes or no,...", "a|b", "whole number,..."]
    assert [parameter.type for parameter in found.values()] == types
    texts: dict[str, tuple[str, Any]] = {
        "one": ("7", 7), "two": ("7", 7.0), "three": ("no,yes", (False, True)), "four": ("b", "b"),
        "five": ("4", (4,)),
    }  # fmt: skip
    for name, (text, value) in texts.items():
        assert found[name].read(text) == value


def test_an_annotation_that_no_text_can_be_is_a_fault_of_the_catalog() -> None:
    def wrong(one: dict[str, int]) -> None: ...

    with pytest.raises(TypeError):
        parameters_of(wrong)


@given(text=st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parameter in parameters_of(sample):
        with contextlib.suppress(InvalidValue):
            parameter.read(text)
