"""``mapping.place``: results, guarantees, consecutive ranks; a portfolio's budgets, chains and interrupts."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mapping
from mapping.deadline import Deadline
from mapping.distances.cost_model import CostModel
from mapping.placement import search
from mapping.placement import workers as running
from mapping.placement.catalog import STRATEGIES, Chain
from mapping.placement.kernels import congestion_descent as kernels
from mapping.placement.methods import congestion_descent, multicore
from mapping.placement.methods.baselines import in_order, random_placement
from mapping.placement.methods.link_loads import LoadSearch
from mapping.placement.objective import better, parse_objective, score
from mapping.placement.place import place
from mapping.placement.problem import Problem
from mapping.placement.search import Features, Portfolio, default_members
from mapping.placement.workers import (
    PROCESSES,
    THREADS,
    Member,
    MemberResult,
    SearchResult,
    StopFile,
    run_members,
    warm_up,
)
from mapping.selfcheck.oracles import cost, every_placement
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Fabric, Ints, Profile
from registry.progress import Progress, silent
from tests.support import search_problems
from tests.support.fat_tree import fat_tree
from tests.support.search_problems import InterruptAt, problems, ring, ring_problem
from tests.support.small_fabrics import given_placement
from tests.support.sure import sure

OBJECTIVES = st.sampled_from(["congestion", "dilation", "hop-bytes"])


def member(chain: str, number: int = 0, **given: Any) -> Member:
    return Member(chain=Chain.parse(chain), number=number, **given)


def members(*chains: str) -> tuple[Member, ...]:
    return tuple(map(member, chains))


def run(
    problem: Problem,
    chains: tuple[Member, ...],
    *,
    objective: str = "congestion",
    steps: int | None = 400,
    seed: int = 0,
    start: Ints | None = None,
    guards: bool = True,
    progress: Progress = silent,
    workers: int = 1,
    executor: Any = THREADS,
) -> SearchResult:
    baselines = {"in-order": problem.slot_host[: problem.ranks]}
    if start is not None:
        baselines = {"given": start, **baselines}
    deadline = Deadline(seconds=np.inf if steps is None else 0.0, steps=steps, workers=workers)
    search = Portfolio(problem, parse_objective(objective), baselines, deadline, progress, executor)
    return search.run(chains, seed, guards=baselines if guards else ())


@given(case=search_problems.placed_problems(), objective=OBJECTIVES, seed=st.integers(0, 9))
def test_never_worse_than_in_order_or_the_start(
    case: search_problems.Placed, objective: str, seed: int
) -> None:
    problem, start = case
    chains = default_members(parse_objective(objective), Features.of(problem))
    found = run(problem, chains, objective=objective, seed=seed, start=start)
    kept = score(problem, found.host_of_rank)
    for baseline in (start, problem.slot_host[: problem.ranks]):
        assert not better(objective, score(problem, baseline), kept)
    assert found.complete
    assert found.steps <= 400


@given(problem=problems(), seed=st.integers(0, 9))
def test_the_best_member_wins(problem: Problem, seed: int) -> None:
    chains = [entry.name for entry in STRATEGIES if not entry.refines]
    found = run(problem, members(*chains), guards=False, seed=seed)
    kept = score(problem, found.host_of_rank)
    for generator_seed, chain in zip(np.random.SeedSequence(seed).spawn(len(chains)), chains, strict=True):
        alone = sure(Chain.parse(chain).strategy).strategy()(problem, np.random.default_rng(generator_seed))
        assert not better("congestion", score(problem, alone), kept)


def test_steps_are_shared_by_weight_and_all_are_used() -> None:
    seen: dict[str, list[float]] = {}

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        assert total == 1000
        seen.setdefault(phase, []).append(done)

    chains = members("in-order+pair-exchange+congestion-descent", "random+pair-exchange")
    found = run(ring_problem(9, 9), chains, steps=1000, progress=progress)
    phases = ["in-order+pair-exchange", *(str(one.chain) for one in chains)]
    last = [max(seen[phase]) for phase in phases]
    assert last == [250, 500, 1000]  # 1 : 1 within the chain and between the two
    assert found.steps == 1000


@pytest.mark.parametrize("call", [None, 1, 2, 3, 10, 60, 130, 190])
def test_progress_reports_a_best_that_only_falls_and_an_interrupt_keeps_it(call: int | None) -> None:
    problem, progress = ring_problem(9, 9), InterruptAt(call)
    chains = members("random+pair-exchange", "in-order+pair-exchange")
    found = run(problem, chains, objective="hop-bytes", steps=2000, progress=progress)
    assert found.complete == (call is None)
    assert progress.best == sorted(progress.best, reverse=True)
    kept, least = score(problem, found.host_of_rank), progress.best[-1]
    assert kept.hop_bytes == least if call is None else kept.hop_bytes <= least
    assert not better("hop-bytes", score(problem, problem.slot_host[:9]), kept)


def test_an_interrupt_before_all_else_gives_the_first_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ring_problem(9, 9)
    start = np.roll(problem.slot_host, 3)
    monkeypatch.setattr(search, "score", MagicMock(side_effect=KeyboardInterrupt))
    found = run(problem, members("greedy"), start=start)
    assert found.host_of_rank.tolist() == start.tolist()
    assert (found.chain, found.complete) == ("given", False)


def test_a_budget_of_steps_is_cut_into_a_hundred_rounds() -> None:
    deadline = Deadline(steps=1050)
    taken = []
    while proposals := deadline.claim(1000):
        taken.append(proposals)
    assert taken == [10] * 105
    assert deadline.fraction == 1.0
    assert Deadline(steps=0).claim(5) == 0
    assert Deadline(seconds=-1.0).claim(5) == 0
    assert [Deadline(steps=10**6).claim(300), Deadline(steps=7).claim(300)] == [300, 1]


CHAINS = ("random+pair-exchange", "in-order+congestion-descent", "greedy+pair-exchange", "random")


class OneByOne:
    """An executor that is neither of threads nor of processes: pickles what it gets, and runs it at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        done: Future[Any] = Future()
        call, given = pickle.loads(pickle.dumps((fn, args)))
        done.set_result(call(*given))
        return done


@pytest.fixture
def plain_main(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages under test put a module of their own in place of __main__, which spawned processes import."""
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))


def assert_same_elsewhere(workers: int, executor: Any) -> None:
    problem, chains = ring_problem(12, 12), members(*CHAINS)
    alone, found = (
        run(problem, chains, objective="hop-bytes", steps=2000, seed=5, workers=number, executor=where)
        for number, where in ((1, THREADS), (workers, executor))
    )
    one, other = (
        sorted((member.number, member.chain, member.host_of_rank.tobytes()) for member in result.members)
        for result in (alone, found)
    )
    assert one == other
    assert found.host_of_rank.tobytes() == alone.host_of_rank.tobytes()
    assert (found.chain, found.steps, found.complete) == (alone.chain, alone.steps, True)


@pytest.mark.parametrize(("workers", "executor"), [(2, THREADS), (3, THREADS), (4, THREADS), (3, OneByOne())])
def test_results_do_not_depend_on_where_members_run(workers: int, executor: Any) -> None:
    assert_same_elsewhere(workers, executor)


@pytest.mark.usefixtures("processes", "plain_main")
def test_results_in_processes_are_those_in_threads() -> None:
    assert_same_elsewhere(2, PROCESSES)


def test_an_interrupt_stops_all_threads_and_keeps_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "TICK", 0.01)
    problem, progress = ring_problem(12, 12), InterruptAt(40)
    found = run(problem, members(*CHAINS), objective="hop-bytes", steps=None, workers=2, progress=progress)
    assert not found.complete
    kept = score(problem, found.host_of_rank)
    assert kept.hop_bytes <= min(progress.best)
    assert not better("hop-bytes", score(problem, problem.slot_host), kept)


def test_an_error_in_a_thread_is_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = MagicMock(side_effect=ZeroDivisionError)
    monkeypatch.setattr("mapping.placement.methods.baselines.place_at_random", broken)
    with pytest.raises(ZeroDivisionError):
        run(ring_problem(12, 12), members(*CHAINS), workers=2)


def run_alone(
    problem: Problem, *members: Member, deadline: Deadline, on: str = "hop-bytes", report: Any = silent
) -> SearchResult:
    """Run members from ranks in reverse order."""
    start = MemberResult(-1, problem.slot_host[::-1].copy(), "reversed", None)
    return run_members(problem, parse_objective(on), members, start, deadline, 0.0, report)


def test_a_worker_ends_when_it_is_stopped_and_reports_it(tmp_path: Path) -> None:
    stop = StopFile(str(tmp_path / "stop"))
    members = (member("random+pair-exchange", n, seed=np.random.SeedSequence(n)) for n in (0, 1))
    deadline = pickle.loads(pickle.dumps(Deadline(seconds=60.0, stop=stop)))
    calls = 0

    def report(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 5:
            stop.set()

    outcome = run_alone(ring_problem(12, 12), *members, deadline=deadline, report=report)
    assert (outcome.complete, outcome.steps > 0) == (False, True)
    assert {one.number for one in outcome.members} == {0}  # the second never began


def test_members_keep_their_best_placement_and_count_steps() -> None:
    members = member("in-order"), member("pair-exchange", 1, steps=(30,))
    found = run_alone(ring_problem(6, 6), *members, deadline=Deadline(steps=30))
    assert (found.complete, found.steps, [one.number for one in found.members]) == (True, 30, [0, 1])
    first, second = found.members
    assert (first.chain, first.host_of_rank.tolist()) == ("in-order", list(range(6)))
    assert second.chain in {"reversed", "reversed+pair-exchange"}


def test_steps_that_a_refiner_leaves_are_the_next_ones_and_without_steps_it_takes_none() -> None:
    problem = ring_problem(6, 6)
    alone = member("digit-search", steps=(500,))
    assert run_alone(problem, alone, deadline=Deadline(steps=500)).steps < 500
    both = member("digit-search+pair-exchange", steps=(500, 100))
    assert run_alone(problem, both, deadline=Deadline(steps=600)).steps == 600
    none = member("random+digit-search+pair-exchange", steps=(0, 300))
    found = run_alone(problem, none, deadline=Deadline(steps=300))
    assert (found.chain, found.steps) == ("random+pair-exchange", 300)


@pytest.mark.parametrize("deadline", [Deadline(seconds=0.0), Deadline(seconds=5.0, steps=0)])
def test_a_refiner_without_time_is_not_begun(deadline: Deadline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoadSearch, "__init__", lambda *_: pytest.fail("it prepares loads"))
    one = member("in-order+congestion-descent", steps=None if deadline.steps is None else (0,))
    found = run_alone(ring_problem(6, 6), one, deadline=deadline, on="congestion")
    assert (found.chain, found.complete, found.steps) == ("in-order", True, 0)
    assert found.host_of_rank.tolist() == list(range(6))


def test_kernels_are_loaded_once_for_the_same_members() -> None:
    members = (member("random"),)
    warm_up("shortest-paths", members, 1)
    hits = warm_up.cache_info().hits
    warm_up("shortest-paths", members, 1)
    assert warm_up.cache_info().hits == hits + 1


def test_the_kernel_that_corrects_parts_is_loaded_before_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    monkeypatch.setattr(multicore, "repair", lambda *_: called.append(1))
    warm_up.__wrapped__("shortest-paths", (member("layout"),), 1)
    assert called


def test_kernels_for_routes_that_do_not_fit_are_loaded_before(monkeypatch: pytest.MonkeyPatch) -> None:
    origins: list[object] = []
    monkeypatch.setattr(congestion_descent, "has_all_routes", lambda problem: False)
    monkeypatch.setattr(kernels, "exchange_on_congestion", lambda *given: origins.append(given[5]))
    problem = ring_problem(6, 6)
    warm_up.cache_clear()
    for chain in ("in-order+pair-exchange", "in-order+congestion-descent"):
        running.load_kernels(problem, (member(chain),), 1)
    warm_up.cache_clear()
    assert len(origins) == 2
    assert None not in origins


@given(problem=problems(), objective=st.sampled_from(["congestion", "hop-bytes", "dilation"]))
def test_the_best_of_all_placements_is_found_on_tiny_problems(problem: Problem, objective: str) -> None:
    fabric, profile, allocation = problem.routes.fabric, problem.profile, problem.allocation
    if profile.ranks > 4:
        return
    costs = CostModel(routing=problem.routes.name)
    found = place(fabric, profile, allocation, costs=costs, objective=objective, steps=3000)
    kept = mapping.evaluate(fabric, profile, found, costs=costs)
    values = []
    for hosts in every_placement(allocation.hosts.tolist(), allocation.slots.tolist(), profile.ranks):
        one = replace(found, host_of_rank=np.array(hosts))
        known = cost(fabric, profile, one, routing=problem.routes.name)
        values.append(known.congestion if objective == "congestion" else known.hop_bytes)
    reached = kept.congestion_seconds if objective == "congestion" else kept.hop_bytes
    assert reached == pytest.approx(min(values), rel=1e-9, abs=1e-12)


def test_the_same_seed_and_steps_give_the_same_bytes() -> None:
    problem = search_problems.talking_torus((6, 7), ranks=40)
    one, two, other = (
        place(problem.routes.fabric, problem.profile, problem.allocation, steps=5000, seed=seed)
        for seed in (4, 4, 5)
    )
    assert one.host_of_rank.tobytes() == two.host_of_rank.tobytes()
    assert one.host_of_rank.tobytes() != other.host_of_rank.tobytes()
    assert (one.steps, one.strategy, one.parameters) == (two.steps, two.strategy, two.parameters)


def test_a_placement_records_how_it_was_found() -> None:
    chains = ["greedy", "greedy+pair-exchange"]
    found = place(*ring(8, 8), objective="hop-bytes", strategies=chains, steps=500, seed=3)
    assert found.strategy in chains
    assert (found.objective, found.routing, found.seed) == ("hop-bytes", "shortest-paths", 3)
    assert (found.complete, found.steps, found.seconds > 0) == (True, 500, True)
    limits = {"rails": "all-connected", "workers": 2, "limit_steps": 500}
    assert found.parameters == {"strategies": "greedy greedy+pair-exchange"} | limits


def test_without_time_there_is_no_search() -> None:
    found = place(*ring(8, 8), seconds=0.0)
    assert "exchange" not in found.strategy
    assert (found.parameters["limit_seconds"], found.steps) == (0.0, 0)


@pytest.mark.parametrize("strategies", [None, ["random"], ["pair-exchange"]])
def test_a_perfect_start_is_given_back(strategies: list[str] | None) -> None:
    fabric, profile, allocation = ring(8, 8)
    start = replace(in_order(8, allocation), host_of_rank=np.arange(8, dtype=np.int32))
    found = place(fabric, profile, allocation, present=start, strategies=strategies, steps=500)
    assert found.host_of_rank.tolist() == list(range(8))
    assert found.strategy.split("+")[0] == "given"


def test_an_interrupt_while_setting_up_gives_ranks_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    fabric, profile, allocation = ring(6, 6)
    place(fabric, profile, allocation, steps=1)  # kernels are warm
    monkeypatch.setattr("mapping.distances.cost_model.build_routes", interrupted)
    found = place(fabric, profile, allocation)
    assert (found.complete, found.strategy) == (False, "in-order")
    assert found.host_of_rank.tolist() == allocation.hosts.tolist()
    start = random_placement(6, allocation, 0)
    kept = place(fabric, profile, allocation, present=start)
    assert kept.host_of_rank.tolist() == start.host_of_rank.tolist()


def random_case(seed: int, hosts: int = 4, each: int = 3, used: int | None = None) -> tuple[Any, ...]:
    random = np.random.default_rng(seed)
    fabric = fat_tree(hosts=3, slow=(0, 5))
    ranks = each * (used or hosts)
    source, target = random.integers(0, ranks, (2, 4 * ranks))
    profile = Profile.from_edges(source, target, random.integers(1, 9, 4 * ranks) * 1e6, ranks=ranks)
    return fabric, profile, Allocation.of(fabric, random.permutation(fabric.hosts)[:hosts].tolist(), each)


def best_order(fabric: Fabric, profile: Profile, allocation: Allocation, objective: str) -> float:
    each = int(allocation.slots[0])
    straight = place(fabric, profile, allocation, strategies=["in-order"], steps=1)
    found = []
    for order in permutations(allocation.hosts.tolist(), profile.ranks // each):
        one = cost(fabric, profile, replace(straight, host_of_rank=np.repeat(order, each)))
        found.append(one.congestion if objective == "congestion" else one.hop_bytes)
    return float(min(found))


@pytest.mark.parametrize("objective", ["congestion", "hop-bytes"])
@pytest.mark.parametrize(("seed", "hosts", "each", "used"), [(0, 4, 3, 4), (1, 5, 2, 5), (2, 5, 2, 3)])
def test_no_order_of_hosts_is_better(objective: str, seed: int, hosts: int, each: int, used: int) -> None:
    fabric, profile, allocation = random_case(seed, hosts, each, used)
    found = place(fabric, profile, allocation, objective=objective, steps=4000, consecutive=True)
    rows = found.host_of_rank.reshape(-1, each)
    assert (rows == rows[:, :1]).all()
    assert len(set(rows[:, 0].tolist())) == used
    assert (found.parameters["consecutive"], found.allocation) == (each, allocation)
    known = cost(fabric, profile, found)
    reached = known.congestion if objective == "congestion" else known.hop_bytes
    assert reached == pytest.approx(best_order(fabric, profile, allocation, objective), rel=1e-9)


def test_each_of_a_pareto_set_is_consecutive() -> None:
    fabric, profile, allocation = random_case(4)
    for found in mapping.pareto(fabric, profile, allocation, steps=2000, consecutive=True):
        assert found.host_of_rank.tolist() == np.repeat(found.host_of_rank[::3], 3).tolist()
        assert found.allocation is allocation


def test_pinned_ranks_bring_their_group_and_a_present_placement_is_kept() -> None:
    fabric, profile, allocation = random_case(5)
    host = int(allocation.hosts[3])
    options: dict[str, Any] = {"steps": 500, "consecutive": True}
    found = place(fabric, profile, allocation, pins={4: host}, **options)
    assert found.host_of_rank[3:6].tolist() == [host] * 3
    assert found.parameters["pins"] == 1
    again = place(fabric, profile, allocation, present=found, strategies=["random"], **options)
    before, after = (mapping.evaluate(fabric, profile, one).congestion_seconds for one in (found, again))
    assert after <= before


def test_what_cannot_be_consecutive_is_refused() -> None:
    fabric, profile, allocation = random_case(6)
    options: dict[str, Any] = {"steps": 10, "consecutive": True}
    uneven = replace(allocation, slots=[3, 3, 4, 3])
    with pytest.raises(InvalidValue, match=r"has 4 slots and .* has 3: all must have the same"):
        place(fabric, profile, uneven, **options)
    with pytest.raises(InvalidValue, match="12 ranks do not fill whole hosts of 5 slots"):
        place(fabric, profile, Allocation.of(fabric, allocation.hosts.tolist(), 5), **options)
    first, second = allocation.hosts[:2].tolist()
    with pytest.raises(InvalidPlacement, match="ranks 0 to 2 are pinned on several hosts"):
        place(fabric, profile, allocation, pins={0: first, 1: second}, **options)
    hosts = np.repeat(allocation.hosts, 3)[[3, 1, 2, 0, *range(4, 12)]]
    crossed = given_placement(allocation, hosts)
    with pytest.raises(InvalidPlacement, match="ranks 0 to 2 are now on several hosts"):
        place(fabric, profile, allocation, present=crossed, **options)
    with pytest.raises(InvalidValue, match="cannot be kept"):
        mapping.remap_few(fabric, profile, allocation, present=crossed, **options)
