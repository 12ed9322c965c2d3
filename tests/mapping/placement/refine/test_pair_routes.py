"""Routes of pairs of hosts in congestion searches are those of the routing, however they are stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.fat_trees import three_level
from ingest.generate.tori import mesh, torus
from mapping.placement.kernels.link_loads import Flows
from mapping.placement.kernels.pair_routes import COMPLETE, COMPUTED
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import pair_routes as building
from mapping.placement.refine.link_grid import LinkGrid, build_link_grid
from mapping.placement.refine.link_loads import load_all, new_flows, new_loads
from mapping.placement.refine.pair_routes import PairRoutes, build_pair_routes
from registry.model import Fabric, Floats
from tests.support.search_problems import Placed, everything_on, placed_problems

ROOMY = 1 << 20


def all_pairs(hosts: int) -> Flows:
    one, other = np.triu_indices(hosts, 1)
    flows = new_flows(len(one))
    flows.source[:], flows.target[:] = one, other
    random = np.random.default_rng(3)
    flows.out[:], flows.back[:] = random.random(len(one)), random.random(len(one)) + 1
    return flows


def exact(problem: Problem, flows: Flows) -> Floats:
    ends = np.r_[flows.source, flows.target], np.r_[flows.target, flows.source]
    return problem.routes.link_bytes(*ends, np.r_[flows.out, flows.back])


def assert_same_loads(problem: Problem, grid: LinkGrid, pair_routes: PairRoutes, flows: Flows) -> None:
    bytes, expected = load_all(pair_routes, new_loads(len(grid)), flows), exact(problem, flows)
    known = grid.of_link >= 0
    np.testing.assert_allclose(bytes[grid.of_link[known]], expected[known], rtol=1e-6, atol=1e-9)
    network = problem.routes.fabric.network_link
    for of_cell, of_link in ((grid.network, network), (~grid.network, ~network)):
        worst = (expected / problem.link_capacity)[of_link].max(initial=0.0)
        assert (bytes / grid.capacity)[of_cell].max(initial=0.0) == pytest.approx(worst, rel=1e-6)


def lazy(problem: Problem, grid: LinkGrid, limit: int = ROOMY) -> PairRoutes:
    return build_pair_routes(problem.routes.flows, grid, limit, most=-1)


def test_whether_routes_fit_is_known_before_they_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = everything_on(mesh((4, 4)))
    grid, flows = build_link_grid(problem), problem.routes.flows
    entries = len(build_pair_routes(flows, grid, ROOMY).table.cell)
    for most in (entries // 2, 2 * entries):
        monkeypatch.setattr(building, "MOST_ENTRIES", most)
        built = build_pair_routes(flows, grid, ROOMY, most=most)
        assert building.routes_fit(flows, grid) is (built.missing is None) is (most > entries)


def test_the_kernel_that_lists_all_routes_is_loaded_if_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = everything_on(three_level(4))
    ends: list[tuple[int, int]] = []
    real = building.kernel.list_path_routes  # type: ignore[attr-defined]

    def noted(origin: object, at: int, end: int, *room: object) -> object:
        ends.append((at, end))
        return real(origin, at, end, *room)

    monkeypatch.setattr("mapping.placement.kernels.pair_routes.list_path_routes", noted)
    assert building.routes_fit(problem.routes.flows, build_link_grid(problem))
    assert ends == [(0, 0)]
    build_pair_routes(problem.routes.flows, build_link_grid(problem), ROOMY)
    assert len(real.signatures) == 1  # the arrays of both calls have the same types


@given(case=placed_problems(), limit=st.sampled_from([0, ROOMY]))
def test_all_pairs_load_what_the_routing_says_whenever_routes_are_computed(case: Placed, limit: int) -> None:
    problem, _ = case
    grid = build_link_grid(problem)
    on_first_use = lazy(problem, grid, limit)
    assert not on_first_use.table.mode[COMPLETE]
    complete = build_pair_routes(problem.routes.flows, grid, ROOMY)
    for routes in (complete, on_first_use, on_first_use, building.of_another_thread(on_first_use, limit)):
        assert_same_loads(problem, grid, routes, all_pairs(problem.hosts))
    most_used, few = building.most_used_first(complete, grid)
    assert_same_loads(problem, few, most_used, all_pairs(problem.hosts))


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [((5,), None), ((4, 3), None), ((3, 5, 4), None), ((3, 3, 4, 3), None), ((4, 5, 3), 23)],
)
def test_on_a_torus_or_a_part_routes_are_kept_by_step(sizes: tuple[int, ...], chosen: int | None) -> None:
    fabric = torus(sizes, capacity=[float(2 + axis) for axis in range(len(sizes))])
    hosts = np.random.default_rng(1).permutation(fabric.hosts)[:chosen].tolist() if chosen else None
    problem = everything_on(fabric, hosts)
    grid = build_link_grid(problem)
    pair_routes = build_pair_routes(problem.routes.flows, grid, ROOMY)
    assert grid.shifts.on
    assert chosen or len(pair_routes.table.where) == problem.hosts + 1
    for one in (pair_routes, lazy(problem, grid)):
        assert_same_loads(problem, grid, one, all_pairs(problem.hosts))


@pytest.mark.parametrize("fabric", [torus((2, 4)), mesh((3, 4)), torus((256,))], ids=["two", "mesh", "long"])
def test_what_cannot_be_shifted_is_kept_by_pair(fabric: Fabric) -> None:
    problem = everything_on(fabric, fabric.hosts[:12].tolist())
    grid = build_link_grid(problem)
    assert not grid.shifts.on
    pair_routes = build_pair_routes(problem.routes.flows, grid, ROOMY)
    assert_same_loads(problem, grid, pair_routes, all_pairs(problem.hosts))


def test_interchangeable_links_of_a_tree_are_one_cell() -> None:
    problem = everything_on(three_level(4))
    grid = build_link_grid(problem)
    pair_routes, few = building.most_used_first(build_pair_routes(problem.routes.flows, grid, ROOMY), grid)
    assert_same_loads(problem, few, pair_routes, all_pairs(problem.hosts))
    network = problem.routes.fabric.network_link
    assert np.count_nonzero(few.of_link[network] >= 0) < 0.6 * np.count_nonzero(network)


def test_memory_stays_bounded() -> None:
    problem = everything_on(mesh((5, 6)))
    grid = build_link_grid(problem)
    limit = 1 << 14
    pair_routes = lazy(problem, grid, limit)
    assert pair_routes.table.cell.nbytes + pair_routes.table.share.nbytes <= limit
    for _ in range(2):
        assert_same_loads(problem, grid, pair_routes, all_pairs(problem.hosts))
    assert pair_routes.table.mode[COMPUTED] > problem.hosts * (problem.hosts - 1) // 2  # some twice


@pytest.mark.parametrize("fabric", [torus((4, 3)), mesh((3, 4)), three_level(4)])
def test_opposite_directions_are_adjacent_cells(fabric: Fabric) -> None:
    cell, links = build_link_grid(everything_on(fabric), merge=False).of_link, fabric.links
    of_ends = {ends: int(cell[row]) for row, ends in enumerate(zip(links.source, links.target, strict=True))}
    assert len(set(cell.tolist())) == len(links)
    assert all(of_ends[b, a] == other ^ 1 for (a, b), other in of_ends.items())


def test_background_keeps_links_apart() -> None:
    problem = everything_on(three_level(4))
    busy = np.zeros(len(problem.routes.fabric.links))
    busy[np.flatnonzero(problem.routes.fabric.network_link)[3]] = 5.0
    grid = build_link_grid(replace(problem, link_background=busy))
    assert (grid.of_link >= 0).all()
    assert grid.background.sum() == 5.0
