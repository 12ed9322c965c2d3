"""Every check agrees on correct code and finds what is wrong; the slow computations by hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mapping.selfcheck.checks as bytes_on_links
import mapping.selfcheck.checks as paths
import mapping.selfcheck.checks as resistances
import mapping.selfcheck.checks as small_optima
import mapping.selfcheck.checks as waiting_times
from ingest.generate.direct import torus
from ingest.generate.trees import k_ary_n_tree
from mapping.distances.distances import Distances
from mapping.selfcheck import oracles
from mapping.selfcheck.checks import SELF_CHECKS, run
from mapping.selfcheck.oracles import Comparison, Subject, one_rank_per_host
from registry.errors import UnknownName
from registry.model import Fabric
from tests.support.sure import sure

FABRICS = {"torus": lambda: torus([3, 3]), "fat-tree": lambda: k_ary_n_tree(3, 2)}
NAMES = [entry.name for entry in SELF_CHECKS]


@pytest.fixture(autouse=True)
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_optima, "CASES", 2)
    monkeypatch.setattr(small_optima, "STEPS", 20_000)


def result_of(name: str, fabric: Fabric) -> Comparison:
    [(entry, comparison)] = run(fabric, [name], seconds=100.0)
    assert entry.name == name
    return comparison


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("name", NAMES)
def test_every_check_agrees(name: str, fabric: str) -> None:
    comparison = result_of(name, FABRICS[fabric]())
    assert comparison.agrees, comparison.differences
    assert comparison.compared >= 4
    assert comparison.largest_difference < 1e-12


def wrong(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, change: Callable[[Any], Any]) -> None:
    """Let a function that a module calls return something else."""
    right = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given, **named: change(right(*given, **named)))


def heavier(found: Any) -> Any:
    loads = found.link_bytes.copy()
    loads[::7] *= 1.5
    return replace(found, link_bytes=loads)


@pytest.mark.parametrize(("module", "name"), [(paths, "paths"), (bytes_on_links, "bytes")])
def test_wrong_loads_are_found(module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch, module, "evaluate", heavier)
    comparison = result_of(name, torus([3, 3]))
    assert not comparison.agrees
    assert comparison.largest_difference == pytest.approx(1 / 3, rel=0.01) or name == "bytes"
    assert "expected" in comparison.differences[0]


def test_wrong_distances_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def longer(found: Distances) -> Distances:
        return Distances(name=found.name, group=found.group, between=found.between * 1.001)

    wrong(monkeypatch, resistances, "distances", longer)
    assert len(result_of("resistances", torus([3, 3])).differences) > 10


def test_a_search_that_does_not_search_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_order(fabric: Fabric, profile: object, allocation: Any, *_: object) -> Any:
        return one_rank_per_host(fabric, allocation.hosts.tolist())

    monkeypatch.setattr(small_optima, "place", in_order)
    assert not result_of("small-optima", torus([4, 4])).agrees


def test_a_bound_above_the_optimum_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def higher(found: Any) -> Any:
        bounds = {name: replace(bound, value=bound.value * 10) for name, bound in found.bounds.items()}
        return replace(found, bounds=bounds)

    wrong(monkeypatch, small_optima, "evaluate", higher)
    differences = result_of("small-optima", torus([3, 3])).differences
    assert differences
    assert all(text.startswith("lower bound") for text in differences)


def test_a_late_packet_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(found: Any) -> Any:
        return replace(found, delivered_at=np.r_[found.delivered_at[:-1], found.delivered_at[-1] + 1e-9])

    monkeypatch.setattr(waiting_times, "LOAD", 0.5)
    wrong(monkeypatch, waiting_times, "simulate", late)
    assert len(result_of("waiting-times", torus([3, 3])).differences) == 1


def test_without_hosts_nothing_agrees_and_an_unknown_check_is_an_error() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0, slots=0)
    for name in ("paths", "bytes", "resistances", "small-optima"):
        comparison = result_of(name, fabric)
        assert comparison.compared == 0
        assert not comparison.agrees
    with pytest.raises(UnknownName, match="paths"):
        next(run(fabric, ["path"]))


def test_the_same_seed_draws_the_same_hosts() -> None:
    fabric = torus([5, 5])
    drawn = [
        Subject(fabric=fabric, seconds=1.0, generator=np.random.default_rng(seed)).draw_hosts(6)
        for seed in (3, 3, 4)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] == sorted(set(drawn[0]))


def test_values_agree_within_rounding_only() -> None:
    comparison = Comparison("values")
    comparison.add("equal", 3.0, 3.0)
    comparison.add("rounded", 1.0 + 1e-12, 1.0)
    comparison.add("infinite", float("inf"), float("inf"))
    assert comparison.agrees
    comparison.add("x", float("nan"), 1.0)
    comparison.add("y", 1.0, float("inf"))
    comparison.add("z", 1.0 + 1e-8, 1.0)
    assert [text[0] for text in comparison.differences] == ["x", "y", "z"]
    assert comparison.compared == 6


def part_by_arc(fabric: Fabric, route: oracles.Route | None) -> dict[str, float]:
    links, parts = fabric.links, defaultdict[str, float](float)
    for row, part in sure(route):
        parts[fabric.names[links.source[row]] + fabric.names[links.target[row]]] += part
    return dict(parts)


def test_no_path_and_too_many_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    apart = Fabric.from_arcs(list("ab"), [], [], [], slots=1)
    assert oracles.route(apart, 0, 1, "shortest-paths") is None
    monkeypatch.setattr(oracles, "MOST_PATHS", 5)
    grid = torus([5, 5])
    assert len(part_by_arc(grid, oracles.route(grid, 0, 6, "shortest-paths"))) == 4
    with pytest.raises(oracles.TooManyPaths):
        oracles.route(grid, 0, 12, "shortest-paths")  # two steps in each direction: 6 paths


def test_placements_are_all_within_the_slots() -> None:
    assert list(oracles.every_placement([7, 9], [1, 2], 2)) == [(7, 9), (9, 7), (9, 9)]
