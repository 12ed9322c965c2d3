"""The rules for plug-ins: the program's own parts follow them, and each rule catches who breaks it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mapping
from almanac.conformance import Rule, cases, rules
from mapping.checks.checks import CHECKS
from mapping.checks.finding import Finding, Subject
from mapping.launchers import FORMATS as LAUNCHERS
from mapping.placement.candidate import Candidate
from mapping.placement.catalog import STRATEGIES
from mapping.placement.problem import Problem
from registry.catalog import Catalog
from registry.errors import InvalidPlacement, InvalidValue, UnknownName
from registry.model import Ints
from tests.support import paths

EXAMPLE = paths.ROOT / "docs" / "examples" / "plug-ins"
REFINER_NAMES = [one.name for one in STRATEGIES if one.refines]
OWN = [
    *(rule for name in ("greedy", "layout", "random") for rule in rules("strategies", name)),
    *(rule for name in REFINER_NAMES for rule in rules("refiners", name)),
    *(rule for name in ("shortest-paths", "up-down", "ecmp", "valiant") for rule in rules("routings", name)),
    *(rule for name in LAUNCHERS.names for rule in rules("launchers", name)),
    *(rule for name in CHECKS.names for rule in rules("checks", name)),
    *rules("formats", "ndt", samples=[paths.TESTS / "data" / "formats" / "fabric.ndt"]),
]


@pytest.mark.parametrize("rule", OWN, ids=lambda rule: str(rule))
def test_own_parts_follow_the_rules(rule: Rule) -> None:
    rule()


def broken(group: str, plug_in: Any, message: str) -> None:
    seen = []
    for rule in rules(group, plug_in):
        try:
            rule()
        except (AssertionError, InvalidPlacement) as error:
            seen.append(str(error))
    assert any(message in text for text in seen), seen


def too_many(problem: Problem, generator: np.random.Generator) -> Ints:
    return np.zeros(problem.ranks, np.int32)


def too_few(problem: Problem, generator: np.random.Generator) -> Ints:
    return problem.slot_host[: problem.ranks - 1]


def elsewhere(problem: Problem, generator: np.random.Generator) -> Ints:
    return np.full(problem.ranks, problem.hosts, np.int32)


def unseeded(problem: Problem, generator: np.random.Generator) -> Ints:
    return problem.slot_host[np.random.default_rng().permutation(len(problem.slot_host))[: problem.ranks]]


def fractional(problem: Problem, generator: np.random.Generator) -> Any:
    return problem.slot_host[: problem.ranks] + 0.5


def test_a_strategy_that_breaks_a_rule_is_named() -> None:
    for strategy, message in (
        (too_many, "too_many placed more ranks on host"),
        (too_few, "too_few returned no placement: too_few: has 11 entries, not 12"),
        (elsewhere, "elsewhere returned host indices outside 0 .. 11"),
        (unseeded, "two runs with seed 0 differ"),
        (fractional, "fractional returned no placement: fractional: must be whole numbers"),
    ):
        broken("strategies", strategy, message)


def rising(problem: Problem, start: Ints, deadline: Any, generator: Any) -> Iterator[Candidate]:
    yield Candidate(np.roll(start, 5), "hop_bytes", 1e9)


def writes_start(problem: Problem, start: Ints, deadline: Any, generator: Any) -> Iterator[Candidate]:
    start[:] = start[::-1]
    yield Candidate(start, "hop_bytes", 0.0)


def moves_pins(problem: Problem, start: Ints, deadline: Any, generator: Any) -> Iterator[Candidate]:
    yield Candidate(start[::-1].copy(), "hop_bytes", 0.0)


def one_per_vertex(subject: Subject) -> Iterator[Any]:
    yield "bad"


def without_severity(subject: Subject) -> Iterator[Finding]:
    yield Finding(2, "a", "text")  # type: ignore[arg-type]


def test_other_plug_ins_that_break_a_rule_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for group, function, message in (
        ("refiners", rising, "rising moved a pinned rank"),
        ("refiners", writes_start, "writes_start changed its start"),
        ("refiners", moves_pins, "moves_pins moved a pinned rank"),
        ("checks", one_per_vertex, "found 'bad', which is no Finding"),
        ("checks", without_severity, "2 is no Severity"),
    ):
        catalog: Catalog[Any] = STRATEGIES if group == "refiners" else CHECKS
        kind = type(next(iter(catalog)))
        extra = {"refines": True, "function": function} if group == "refiners" else {}
        entry = kind(name=function.__name__, target=f"{__name__}:{function.__name__}", about="", **extra)
        monkeypatch.setitem(catalog._own, entry.name, entry)
        broken(group, entry.name, message)


def test_cases_are_uneven_and_unknown_groups_and_names_answered_with_the_closest() -> None:
    labels, _, _, allocations = zip(*cases(), strict=True)
    assert labels == ("torus", "fat tree", "one host")
    assert int(allocations[1].slots.sum()) > 12
    assert allocations[1].hosts.tolist() != sorted(allocations[1].hosts.tolist())
    with pytest.raises(UnknownName, match="closest: strategies"):
        rules("strategy", "greedy")
    with pytest.raises(UnknownName, match="closest: greedy"):
        rules("strategies", "gredy")
    with pytest.raises(AssertionError, match="is a refiner"):
        rules("strategies", "pair-exchange")


def test_a_function_is_a_strategy() -> None:
    _, fabric, profile, allocation = next(cases())

    def reverse(problem: Problem, generator: np.random.Generator) -> Ints:
        return problem.slot_host[: problem.ranks][::-1]

    found = mapping.place(fabric, profile, allocation, strategies=[reverse], steps=10, pins={0: "n03"})
    assert found.strategy == "reverse"
    assert found.host_of_rank.tolist() == [3, *range(10, 8, -1), *range(8, 3, -1), 11, 2, 1, 0]
    with pytest.raises(InvalidValue, match="strategies: 5 is neither a name nor a function"):
        mapping.place(fabric, profile, allocation, strategies=[5])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, processes: None) -> Path:
    """Return a folder with the example package as pip installs it, and a package with a broken plug-in."""
    folder = tmp_path_factory.mktemp("site")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    broken = {"fabric_almanac.routings": {"wreck": "wrecks:build"}}
    for package, groups in ((project["name"], project["entry-points"]), ("wrecks", broken)):
        info = folder / f"{package.replace('-', '_')}-{project['version']}.dist-info"
        info.mkdir()
        lines = f"Metadata-Version: 2.1\nName: {package}\nVersion: {project['version']}\n"
        (info / "METADATA").write_text(lines)
        text = [
            f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in points.items())
            for group, points in groups.items()
        ]
        (info / "entry_points.txt").write_text("".join(text))
    shutil.copytree(EXAMPLE / "almanac_examples", folder / "almanac_examples")
    return folder


def run(site: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(paths.ROOT)])}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=site, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_package_passes_its_tests_is_used_by_name_and_listed_by_doctor(site: Path) -> None:
    out = run(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests"))
    assert "24 passed" in out
    strategy, routing, listed = json.loads(run(site, "-c", USED))
    assert strategy in ("by-volume", "by-volume+adjacent-swaps")
    assert routing == "grid-or-tree"
    by_name = {name: (state, seen) for name, state, seen in listed}
    assert set(by_name) == {name.strip() for name in LISTED.split(",")}
    about = "Ranks that send and receive most come first, on the slots in order; of almanac-examples 1.0"
    assert by_name["strategy by-volume"] == ("ok", about)
    missing = "ModuleNotFoundError: No module named 'wrecks'; of wrecks 1.0: update or remove it"
    assert by_name["routing wreck"] == ("warning", missing)


USED = """
import json
import mapping
from almanac.commands.status import _plug_ins
from almanac.conformance import cases
_, fabric, profile, allocation = next(cases())
options = {"strategies": ["by-volume+adjacent-swaps"], "steps": 200}
found = mapping.place(fabric, profile, allocation, costs=mapping.CostModel(routing="grid-or-tree"), **options)
print(json.dumps([found.strategy, found.routing, list(_plug_ins())]))
"""
LISTED = """
format neighbours, strategy by-volume, refiner adjacent-swaps, routing grid-or-tree, routing wreck,
export format host-list, check single-cable
"""
