"""Rules that every plug-in must follow, as tests for its author and for the program's own parts.

In the tests of another package::

    import pytest
    from almanac.conformance import rules

    @pytest.mark.parametrize("rule", rules("strategies", "my-strategy"), ids=str)
    def test_my_strategy(rule):
        rule()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mapping
from ingest.catalog import FORMATS, recognise
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from mapping.checks.checks import CHECKS
from mapping.checks.finding import Finding, Severity, Subject
from mapping.deadline import Deadline
from mapping.launchers import FORMATS as LAUNCHERS
from mapping.launchers import write
from mapping.placement.catalog import STRATEGIES, Chain
from mapping.placement.methods.baselines import in_order, random_placement
from mapping.placement.objective import Score, score
from mapping.placement.problem import Problem, host_indices
from mapping.routing.catalog import ROUTINGS, build_routes
from registry.catalog import Catalog
from registry.errors import InputError, InvalidPlacement, UnknownName
from registry.model import Allocation, Fabric, Ints, Profile

CATALOGS: tuple[Catalog[Any], ...] = (FORMATS, STRATEGIES, ROUTINGS, LAUNCHERS, CHECKS)
"""Tables that other packages can extend."""
STEPS = 2_000
"""Proposals of each search."""
SEEDS = (0, 7)
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule for one plug-in; a call raises `AssertionError` if the plug-in breaks it."""

    name: str
    check: Callable[[], None]

    def __call__(self) -> None:
        """Check the rule."""
        self.check()

    def __str__(self) -> str:
        return self.name


def rules(group: str, plug_in: Any, samples: Sequence[str | Path] = ()) -> tuple[Rule, ...]:
    """Return the rules for a plug-in.

    Args:
        group: Group of its entry point without ``fabric_almanac.``: ``strategies``, ``refiners``,
            ``routings``, ``launchers``, ``checks`` or ``formats``.
        plug_in: Its name, with options if it has some; a strategy may be a function.
        samples: Files that a format must read.

    Raises:
        UnknownName: An unknown group or plug-in, with the closest names.
        PlugInError: The plug-in cannot be used.
    """
    if group not in _GROUPS:
        raise UnknownName("group", group, _GROUPS)
    found = _GROUPS[group](plug_in) if group != "formats" else _format(plug_in, samples)
    return tuple(Rule(name, check) for name, check in found)


class Case(NamedTuple):
    """A small fabric with a profile to place on an allocation."""

    label: str
    fabric: Fabric
    profile: Profile
    allocation: Allocation


def cases() -> Iterator[Case]:
    """Yield small cases: a torus, a fat tree with free slots and several ranks per host, one host."""
    at = np.arange(12)
    ring = Profile.from_edges(np.r_[at, at], np.r_[(at + 1) % 12, (at + 5) % 12], np.r_[at + 1.0, at + 3.0])
    grid = at.reshape(3, 4)
    one = np.r_[grid.ravel(), grid.ravel()]
    two = np.r_[np.roll(grid, -1, 1).ravel(), np.roll(grid, -1, 0).ravel()]
    names = [f"n{vertex:02}" for vertex in at]
    torus = Fabric.from_arcs(names, np.r_[one, two], np.r_[two, one], 1.0)
    yield Case("torus", torus, ring, Allocation.of(torus, at))
    leaf = 8 + at[:8] // 2
    up = np.repeat(at[:4] + 8, 2)
    low, high = np.r_[at[:8], up], np.r_[leaf, np.tile([12, 13], 4)]
    tree = Fabric.from_arcs(
        [f"v{vertex:02}" for vertex in range(14)],
        np.r_[low, high],
        np.r_[high, low],
        2.0,
        slots=np.r_[np.full(8, 2), np.zeros(6)],
    )
    yield Case("fat tree", tree, ring, Allocation.of(tree, [6, 1, 3, 0, 7, 2, 5], [2, 3, 1, 2, 2, 2, 2]))
    yield Case("one host", torus, Profile.from_edges([0], [1], [1.0], ranks=3), Allocation.of(torus, [4], 3))


def _problem(case: Case, pins: Ints | None = None) -> Problem:
    """Return the problem of a case on all shortest paths."""
    routes = build_routes("shortest-paths", case.fabric, case.allocation.hosts)
    free = np.full(case.profile.ranks, -1, np.int32)
    return Problem(
        profile=case.profile, allocation=case.allocation, routes=routes, pins=free if pins is None else pins
    )


def _strategy(plug_in: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the rules for strategies."""
    chain = Chain.parse(plug_in) if isinstance(plug_in, str) else Chain.of(plug_in)
    _require(chain.strategy is not None, f"{plug_in} is a refiner, not a strategy")
    assert chain.strategy is not None
    function, name = chain.strategy.strategy(), str(chain.strategy)
    for case in cases():
        yield f"valid placement, same seed same result: {case.label}", partial(_places, function, name, case)
        yield f"pins, never worse than the start: {case.label}", partial(_searches, plug_in, case)


def _places(function: Any, name: str, case: Case) -> None:
    problem = _problem(case)
    for seed in SEEDS:
        found = [problem.checked(function(problem, np.random.default_rng(seed)), name) for _ in range(2)]
        _require(found[0].tolist() == found[1].tolist(), f"{name}: two runs with seed {seed} differ")


def _searches(plug_in: Any, case: Case) -> None:
    """Search with pins from a random start; the result keeps the pins and is not worse."""
    _, fabric, profile, allocation = case
    start = random_placement(profile.ranks, allocation, seed=3)
    pins: dict[int, str | int] = {rank: int(start.host_of_rank[rank]) for rank in (0, profile.ranks - 1)}
    found = [
        mapping.place(
            fabric, profile, allocation, strategies=[plug_in], steps=STEPS, present=start, pins=pins
        )
        for _ in range(2)
    ]
    _require(found[0].host_of_rank.tolist() == found[1].host_of_rank.tolist(), "two searches differ")
    for rank, host in pins.items():
        _require(int(found[0].host_of_rank[rank]) == host, f"rank {rank} left the host that it is pinned to")
    worst = [mapping.evaluate(fabric, profile, one).congestion_seconds for one in (start, found[0])]
    _require(worst[1] <= worst[0] * (1 + _TOLERANCE), f"the search ended worse than its start: {worst}")


def _refiner(plug_in: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the rules for refiners."""
    chain = Chain.parse(plug_in)
    _require(chain.strategy is None, f"{plug_in} is a strategy, not a refiner")
    (link,) = chain.refiners
    for case in cases():
        yield f"candidates: {case.label}", partial(_refines, link.refiner(), str(link), case)
        yield f"pins, never worse than the start: {case.label}", partial(_searches, plug_in, case)


def _refines(refine: Any, name: str, case: Case) -> None:
    """Run a refiner twice; check each candidate, the pins, its metric, its start and the deadline."""
    _, _, profile, allocation = case
    ranks = profile.ranks
    pins = np.full(ranks, -1, np.int32)
    start = host_indices(allocation, in_order(ranks, allocation).host_of_rank)
    pins[0], pins[-1] = start[0], start[-1]
    problem = _problem(case, pins)
    runs = []
    for _ in range(2):
        given, deadline = start.copy(), Deadline(steps=STEPS)
        runs.append(list(refine(problem, given, deadline, np.random.default_rng(1))))
        _require(given.tolist() == start.tolist(), f"{name} changed its start")
        _require(deadline.taken <= STEPS, f"{name} took {deadline.taken} of {STEPS} steps")
    first, second = ([one.host_of_rank.tolist() for one in run] for run in runs)
    _require(first == second, f"{name}: two runs with the same seed and steps differ")
    last = start
    for candidate in runs[0]:
        hosts = problem.checked(candidate.host_of_rank, name)
        _require(bool(hosts[0] == pins[0] and hosts[-1] == pins[-1]), f"{name} moved a pinned rank")
        _require(candidate.metric in Score._fields, f"{name}: {candidate.metric!r} is no metric")
        before, after = (getattr(score(problem, one), candidate.metric) for one in (last, hosts))
        _require(
            after <= before * (1 + _TOLERANCE), f"{name}: {candidate.metric} rose from {before} to {after}"
        )
        last = hosts


def _routing(plug_in: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the rules for routings."""
    for case in cases():
        yield f"loads: {case.label}", partial(_routes, plug_in, case)


def _routes(name: str, case: Case) -> None:
    """Route all pairs: what leaves and enters each vertex fits, and the loads are the bytes times hops."""
    _, fabric, _, allocation = case
    hosts = len(allocation)
    source, target = (each[~np.eye(hosts, dtype=bool)] for each in np.indices((hosts, hosts)))
    size = 1.0 + np.arange(len(source))
    loads = [build_routes(name, fabric, allocation.hosts).load(source, target, size) for _ in range(2)]
    _require(loads[0].link_bytes.tolist() == loads[1].link_bytes.tolist(), f"{name}: two runs differ")
    link_bytes, hops = loads[0]
    _require(link_bytes.shape == (len(fabric.links),), f"{name}: not one load per link")
    _require(bool((link_bytes >= 0).all()), f"{name}: a load is below zero")
    _require(bool((hops >= 1).all()), f"{name}: hosts are joined by less than one link")
    np.testing.assert_allclose(
        link_bytes.sum(), size @ hops, err_msg=f"{name}: loads are not bytes times hops"
    )
    surplus = np.zeros(len(fabric))
    np.add.at(surplus, fabric.links.source, link_bytes)
    np.add.at(surplus, fabric.links.target, -link_bytes)
    np.add.at(surplus, allocation.hosts[source], -size)
    np.add.at(surplus, allocation.hosts[target], size)
    np.testing.assert_allclose(surplus, 0, atol=1e-6, err_msg=f"{name}: bytes appear or vanish at a vertex")


def _launcher(plug_in: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the rules for launcher formats."""
    LAUNCHERS.find(plug_in)
    for case in cases():
        ranks = case.profile.ranks
        placements = [in_order(ranks, case.allocation), random_placement(ranks, case.allocation, 5)]
        yield f"text: {case.label}", partial(_writes, plug_in, case.fabric, placements)


def _writes(name: str, fabric: Fabric, placements: Sequence[Any]) -> None:
    """Write placements; in order with as many ranks on each host must work, others may be refused."""
    for placement in placements:
        ranks = np.unique(placement.host_of_rank, return_counts=True)[1]
        even = placement.strategy == "in-order" and len(set(ranks.tolist())) == 1
        try:
            texts = [write(name, placement, fabric) for _ in range(2)]
        except InvalidPlacement as error:
            _require(bool(error.reason), f"{name} refuses a placement without a reason")
            _require(not even, f"{name} cannot write ranks in order: {error}")
            continue
        _require(texts[0] == texts[1], f"{name}: two texts of one placement differ")
        _require(bool(texts[0].strip()), f"{name} wrote nothing")


def _check(plug_in: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the rules for checks."""
    find = CHECKS.find(plug_in).load()
    for case in cases():
        yield f"findings: {case.label}", partial(_finds, find, plug_in, case.fabric)


def _finds(find: Any, name: str, fabric: Fabric) -> None:
    runs = [list(find(Subject(fabric=fabric))) for _ in range(2)]
    _require(runs[0] == runs[1], f"{name}: two runs differ")
    for one in runs[0]:
        _require(isinstance(one, Finding), f"{name} found {one!r}, which is no Finding")
        _require(isinstance(one.severity, Severity), f"{name}: {one.severity!r} is no Severity")


def _format(name: str, samples: Sequence[str | Path]) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the rules for file formats."""
    parser = FORMATS.find(name)
    _require(bool(samples), "give files that the format must read: samples=[...]")
    for sample in samples:
        path, data = str(sample), Path(sample).read_bytes()
        yield f"recognised as no other format: {Path(path).name}", partial(_recognised, name, path, data)
        yield f"damaged files: {Path(path).name}", partial(_damaged, parser, name, path, data)
    yield "other files", partial(_other_files, parser, name)


def _recognised(name: str, path: str, data: bytes) -> None:
    """Recognise and read a sample."""
    file = SourceFile(path=path, data=data, modified_at=datetime.now(UTC))
    found = recognise(file.as_group())
    _require(found.name == name, f"{path} is recognised as {found.name}")
    parsed = found.parse([file], Options())
    _require(isinstance(parsed, Parsed), f"{name} returned {type(parsed).__name__}, not Parsed")


def _damaged(parser: Any, name: str, path: str, data: bytes) -> None:
    """Read parts of a sample and changed bytes; nothing but `InputError` may be raised."""
    generator = np.random.default_rng(0)
    for length in generator.integers(0, len(data) + 1, 50).tolist():
        damaged = bytearray(data[:length])
        for at in generator.integers(0, max(length, 1), 3).tolist() if length else ():
            damaged[at] = int(generator.integers(0, 256))
        file = SourceFile(path=path, data=bytes(damaged), modified_at=datetime.now(UTC))
        parser.recognise(file.head(), path)
        try:
            parser.parse([file], Options())
        except InputError as error:
            _require(bool(error.reason), f"{name} refuses a file without a reason")


def _other_files(parser: Any, name: str) -> None:
    for text in ("", "\n", "text\n", "{}", "a,b\n1,2\n", "<xml/>", "\0\1\2"):
        _require(not parser.recognise(text, "file"), f"{name} recognises {text!r}, which may be any file")


def _require(holds: bool, message: str) -> None:
    """Raise `AssertionError` with a message if a rule does not hold."""
    if not holds:
        raise AssertionError(message)


_GROUPS: dict[str, Callable[..., Iterator[tuple[str, Callable[[], None]]]]] = {
    "strategies": _strategy,
    "refiners": _refiner,
    "routings": _routing,
    "launchers": _launcher,
    "checks": _check,
    "formats": _format,
}
