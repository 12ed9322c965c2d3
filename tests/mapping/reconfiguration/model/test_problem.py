"""Applications and machines of circuit plans: values, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from mapping.reconfiguration.model.problem import Application, Machine
from registry.errors import InvalidValue
from registry.model import Profile
from tests.support.reconfigure_problems import machine

NAN = float("nan")


def test_both_directions_and_repeats_of_an_edge_are_summed_and_loops_left_out() -> None:
    found = Application.from_edges([0, 1, 1, 2, 2], [1, 0, 0, 2, 1], [1.0, 2.0, 4.0, 99.0, 8.0])
    assert found.source.tolist() == [0, 1]
    assert found.target.tolist() == [1, 2]
    assert found.weight.tolist() == [7.0, 8.0]
    assert found.vertex_weight.tolist() == [1.0, 1.0, 1.0]


def test_the_application_of_a_profile_has_a_vertex_a_rank_and_the_bytes_of_both_directions() -> None:
    profile = Profile.from_edges([0, 1, 2], [1, 0, 0], [3.0, 4.0, 5.0])
    found = Application.of_profile(profile, [2.0, 0.0, 1.0])
    assert (found.source.tolist(), found.target.tolist()) == ([0, 0], [1, 2])
    assert found.weight.tolist() == [7.0, 5.0]
    assert found.vertex_weight.tolist() == [2.0, 0.0, 1.0]


def test_a_disconnected_application_is_refused_naming_a_vertex_unless_it_is_allowed() -> None:
    with pytest.raises(InvalidValue, match="vertex 2 and vertex 0: the application has 2"):
        Application.from_edges([0, 2], [1, 3], [1.0, 1.0])
    found = Application.from_edges([0, 2], [1, 3], [1.0, 1.0], connected=False)
    assert (found.vertices, found.edges) == (4, 2)
    idle = Profile.from_edges([0], [1], [1.0], ranks=3)
    with pytest.raises(InvalidValue, match="vertex 2 and vertex 0"):
        Application.of_profile(idle)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vertex_weight": []}, "at least one vertex"),
        ({"vertex_weight": [1.0, -2.0, 1.0]}, "vertex_weight: is -2.0 at 1"),
        ({"vertex_weight": [1.0, 1.0, NAN]}, "vertex_weight: is nan at 2"),
        ({"weight": [1.0, float("inf")]}, r"Application.weight: is inf at 1"),
        ({"weight": [1.0]}, "has 1 entries, not 2"),
        ({"source": [0, 2], "target": [1, 2]}, "row 1 connects 2 and 2"),
        ({"source": [0, 2], "target": [1, 1]}, "row 1 connects 2 and 1"),
        ({"target": [1, 3]}, "row 1 connects 1 and 3"),
        ({"source": [0, 0], "target": [2, 1]}, "row 1, 0 and 1, repeats or goes back"),
        ({"source": [0, 0], "target": [1, 1]}, "row 1, 0 and 1, repeats or goes back"),
    ],
)
def test_rows_and_weights_that_cannot_be_are_named(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "vertex_weight": [1.0, 1.0, 1.0],
        "source": [0, 1],
        "target": [1, 2],
        "weight": [1.0, 2.0],
    }
    Application(**good)
    with pytest.raises(InvalidValue, match=message):
        Application(**good | change)


@pytest.mark.parametrize(
    ("edges", "more", "message"),
    [
        (([0, 1], [1, 2], [1.0, NAN]), {}, "weight: is nan at 1"),
        (([0, 1], [1, 2], [1.0]), {}, "weight: has 1 entries, not 2"),
        (([0, 1], [1], [1.0, 1.0]), {}, "differ in length: 2 and 1"),
        (([0, -1], [1, 2], [1.0, 1.0]), {}, "source: is -1 at 1, not within 0 .. 2"),
        (([0, 1], [1, 5], [1.0, 1.0]), {"vertices": 3}, "target: is 5 at 1, not within 0 .. 2"),
        (([0, 1], [1, 2], [1.0, 1.0]), {"vertices": 4, "vertex_weight": [1.0]}, "has 1 entries, not 4"),
        (([0.5], [1], [1.0]), {}, "whole numbers"),
    ],
)
def test_edges_that_cannot_be_are_named(edges: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Application.from_edges(*edges, **more)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": 0}, "nodes: is 0, must be at least 1"),
        ({"nodes": 999_999_999, "max_edges": 1 << 40}, "nodes: is 999999999, must be at most 16384"),
        ({"nodes": 2.5}, "nodes: is 2.5, must be a whole number"),
        ({"max_degree": 1}, "max_degree: is 1, must be at least 2: fewer links do not connect 6 nodes"),
        ({"max_edges": 4}, "max_edges: is 4, must be at least 5"),
        ({"compute_speed": 0.0}, "compute_speed: is 0.0, must be finite and above zero"),
        ({"compute_speed": NAN}, "compute_speed: is nan"),
        ({"link_speed": -1.0}, "link_speed: is -1.0"),
        ({"link_speed": float("inf")}, "link_speed: is inf"),
    ],
)
def test_a_machine_refuses_what_cannot_join_its_nodes_or_work(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "nodes": 6,
        "max_degree": 2,
        "max_edges": 5,
        "compute_speed": 1.0,
        "link_speed": 1.0,
    }
    Machine(**good)
    with pytest.raises(InvalidValue, match=message):
        Machine(**good | change)


def test_two_nodes_need_one_port_and_one_node_none() -> None:
    machine(2, max_degree=1, max_edges=1)
    machine(1, max_degree=0, max_edges=0)
