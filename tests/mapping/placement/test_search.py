"""Options of a search, default members, sets that none dominates; and searches on a real Dask cluster."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mapping
from ingest.generate import nas
from ingest.generate.direct import hypercube, percs
from ingest.generate.stencils import stencil
from ingest.generate.trees import extended_generalised_fat_tree
from mapping.cluster import open_cluster
from mapping.placement import search
from mapping.placement.methods.baselines import in_order
from mapping.placement.objective import Score, parse_objective, score
from mapping.placement.place import not_dominated
from mapping.placement.problem import host_indices
from mapping.placement.search import QUICK, STARTS, Features, SearchOptions, default_members
from mapping.placement.workers import MemberResult
from registry.errors import InvalidValue
from registry.model import Allocation, Fabric, Placement, Profile
from registry.progress import Progress, silent
from tests.support.dask_cluster import DaskCluster, dask_cluster
from tests.support.search_problems import InterruptAt, problem_on, ring, ring_problem, torus8


def test_workers_under_steps_depend_on_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert SearchOptions(steps=1000).start_clock().workers == 2
    assert SearchOptions().start_clock().workers == 64


def test_options_as_a_search_takes_them() -> None:
    options = SearchOptions(strategies=["greedy:starts=8+pair-exchange"], steps=50, workers=3)
    (chain,) = options.chains()
    assert str(chain) == "greedy:starts=8+pair-exchange"
    assert (SearchOptions().chains(), SearchOptions().limit) == ((), {"limit_seconds": 10.0})
    assert options.limit == {"limit_steps": 50}
    with pytest.raises(InvalidValue, match="at least one name"):
        SearchOptions(strategies=[]).chains()
    deadline = options.start_clock()
    assert (deadline.steps, deadline.workers) == (50, 3)
    assert SearchOptions(steps=1e3) == SearchOptions(steps=1000)  # type: ignore[arg-type]
    assert SearchOptions(objective="mapping-coefficient").default_distance == "equivalent+2"
    assert SearchOptions(objective="2*hop-bytes+congestion").default_distance == "links"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"seconds": "2"}, "seconds: must be a number, not '2'"),
        ({"seconds": -0.5}, "seconds: "),
        ({"seconds": float("nan")}, "seconds: "),
        ({"steps": 2.5}, "steps: must be a whole number, not 2.5"),
        ({"steps": "3"}, "steps: must be a whole number, not '3'"),
        ({"steps": -1}, "steps: "),
        ({"seed": -1}, "seed: must not be below zero"),
        ({"seed": 0.5}, "seed: must be a whole number, not 0.5"),
        ({"workers": 1.5}, "workers: must be a whole number, not 1.5"),
        ({"workers": 0}, "workers: "),
        ({"moves": 1.5}, "moves: must be a whole number, not 1.5"),
        ({"moves": -1}, "moves: "),
    ],
)
def test_options_out_of_range_or_of_another_type_are_errors(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidValue) as error:
        SearchOptions(**wrong)
    assert says in str(error.value)


LONG = "layout+digit-search:on=congestion+pair-exchange+congestion-descent"
SCATTERED = "random+congestion-descent"


def on_the_first(fabric: Fabric, profile: Profile, hosts: int | None = None) -> Features:
    allocation = Allocation.of(fabric, fabric.hosts[:hosts].tolist(), 1)
    return Features.of(problem_on(fabric, profile, allocation))


def chains(measured: Features, objective: str = "congestion", **changes: int) -> list[str]:
    members = default_members(parse_objective(objective), replace(measured, **changes))
    return [str(member.chain) for member in members]


def test_ranks_are_scattered_first_where_a_wide_direct_network_has_many_free_hosts() -> None:
    measured = on_the_first(percs(12), stencil((8, 4, 4), 7))
    assert measured.scattered < 1.0
    assert chains(measured, hosts=search.WIDE + 1, ranks=700) == [SCATTERED]
    assert chains(measured, hosts=search.WIDE, ranks=700) == [LONG, SCATTERED]
    assert chains(measured, "hop-bytes", hosts=search.WIDE + 1, ranks=700) == [
        "layout+digit-search+pair-exchange"
    ]


def test_ranks_are_not_scattered_elsewhere() -> None:
    cases = {
        "few free hosts": on_the_first(percs(12), stencil((8, 4, 4), 7), 200),
        "hosts on switches": on_the_first(extended_generalised_fat_tree((8, 8), (1, 8)), nas.cg(32)),
        "in order is better": on_the_first(hypercube(7), nas.cg(32)),
        "nothing is sent": on_the_first(percs(4), Profile.from_edges([], [], [], ranks=2)),
    }
    for name, measured in cases.items():
        assert not measured.scattered < 1.0, name
        assert set(chains(measured, ranks=search.SMALL + 1)) <= {*STARTS, QUICK}, name


def test_a_tree_of_few_switches_gets_several_searches_from_different_starts() -> None:
    tree = on_the_first(extended_generalised_fat_tree((16, 32), (1, 8)), nas.lu(512))
    assert chains(tree) == list(STARTS)
    assert chains(on_the_first(percs(16), stencil((32, 16), 5))) == [LONG, QUICK]
    assert len(chains(tree, ranks=search.MOST_SPECTRAL + 1)) == len(STARTS) - 1
    assert len(chains(tree, groups=search.FEW_GROUPS + 1)) == 2


def test_small_problems_get_several_searches() -> None:
    measured = Features.of(ring_problem(9, 9))
    for objective, most in (
        ("congestion", search.SMALL),
        ("hop-bytes", search.FEW),
        ("dilation", search.FEW),
    ):
        few, many = (chains(measured, objective, ranks=ranks) for ranks in (most, most + 1))
        assert len(few) > len(many) >= 1


def test_scattered_is_the_ratio_of_worst_links() -> None:
    pair = Profile.from_edges([0], [1], [1.0], ranks=2)
    assert on_the_first(percs(2), pair, 4).scattered == pytest.approx(1.0)
    assert np.isinf(on_the_first(percs(2), stencil((2, 2), 5), 7).scattered)


def test_the_set_goes_from_least_congestion_to_fewest_hop_bytes() -> None:
    fabric, profile, allocation = torus8()
    found = mapping.pareto(fabric, profile, allocation, steps=100_000)
    assert len(found) > 2
    names = ("congestion_seconds", "network_congestion_seconds", "hop_bytes")
    values = np.array([[float(one.parameters[name]) for name in names] for one in found])
    assert values.tolist() == sorted(values.tolist())
    assert (np.diff(values[:, 2]) <= 0).all()
    straight = mapping.evaluate(fabric, profile, in_order(512, allocation))
    assert values[0, 0] < straight.congestion_seconds
    assert values[-1, 2] < straight.hop_bytes
    for one, value in zip(found, values, strict=True):
        known = mapping.evaluate(fabric, profile, one)
        assert (known.congestion_seconds, known.hop_bytes) == pytest.approx((value[0], value[2]))


def test_the_same_seed_and_steps_give_the_same_set_and_an_interrupt_leaves_one() -> None:
    one, two = (mapping.pareto(*ring(10, 10), steps=3000) for _ in "ab")
    assert [p.host_of_rank.tobytes() for p in one] == [p.host_of_rank.tobytes() for p in two]
    found = mapping.pareto(*ring(10, 10), progress=InterruptAt(30), steps=3000)
    assert found
    assert not any(one.complete for one in found)


AXES = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 5))


@given(values=st.lists(AXES, min_size=1, max_size=12))
def test_none_is_dominated_and_all_others_are(values: list[tuple[int, int, int]]) -> None:
    scores = [Score(*map(float, value)) for value in values]
    tried = [MemberResult(at, np.zeros(0, np.int32), "", score) for at, score in enumerate(scores)]
    kept = {values[one.number] for one in not_dominated(tried)}

    def beats(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
        return one[:2] <= other[:2] and one[2] <= other[2] and one != other

    assert kept == {one for one in values if not any(beats(other, one) for other in values)}
    assert len(not_dominated(tried)) == len(kept)


RANKS = 40


def found_in(executor: Any = "threads", progress: Progress = silent, **options: Any) -> Placement:
    given = {"objective": "hop-bytes", "executor": executor, **options}
    return mapping.place(*ring(RANKS, RANKS), progress=progress, **given)


def content(placement: Placement) -> tuple[Any, ...]:
    """Return all of a placement but the time that it took."""
    names = ("strategy", "parameters", "seed", "steps", "complete")
    return (placement.host_of_rank.tobytes(), *(getattr(placement, name) for name in names))


@pytest.mark.usefixtures("processes")
def test_a_worker_that_is_killed_during_the_search_changes_nothing(tmp_path: Path) -> None:
    options: dict[str, Any] = {"steps": 4_000_000, "workers": 3, "seeds": 3}
    reports: list[tuple[str, float, float | None]] = []

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        reports.append((phase, done, best))
        if phase == "layout":  # the first report of a task
            os.kill(other.workers[0], signal.SIGKILL)

    with dask_cluster(tmp_path, 3) as other, open_cluster(other.address) as cluster:
        there = found_in(cluster, progress=progress, **options)
        assert "Remove worker" in other.log()
    assert content(there) == content(found_in(**options))
    assert max(done for _, done, _ in reports) > 0  # proposals on other machines are counted
    assert min(best for _, _, best in reports if best is not None) < np.inf


def test_an_interrupt_keeps_the_best_and_frees_the_workers(dask: DaskCluster) -> None:
    problem = ring_problem(RANKS, RANKS)
    seen: list[float] = []

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        seen.append(np.inf if best is None else best)
        if phase.endswith("pair-exchange"):  # a task has begun to exchange
            raise KeyboardInterrupt

    with open_cluster(dask.address) as cluster:
        found = found_in(cluster, seconds=1e6, progress=progress)  # the interrupt ends it
        assert not found.complete
        assert found.steps > 0
        kept = score(problem, host_indices(problem.allocation, found.host_of_rank))
        assert kept.hop_bytes <= min(seen) < np.inf
    with open_cluster(dask.address) as cluster:
        assert [one.result(90.0) for one in [cluster.submit(abs, -1) for _ in range(3)]] == [1] * 3


def test_each_machine_gets_a_chain_if_the_limit_is_in_seconds(dask: DaskCluster) -> None:
    with open_cluster(dask.address) as cluster:
        one = SearchOptions(strategies=["greedy"], executor=cluster)
        assert (one.repeats(1), one.repeats(2), one.repeats(4)) == (3, 2, 1)
        assert replace(one, steps=5).repeats(1) == 1
        assert replace(one, seeds=2).repeats(1) == 2
        assert one.start_clock().workers == 3
        in_steps = replace(one, steps=5)
        assert (one.for_task(cluster, 2).workers, in_steps.for_task(cluster, 2).workers) == (1, None)
    assert SearchOptions(strategies=["greedy"]).repeats(1) == 1
