"""`--scheduler` of commands with a real Dask cluster: the same results; errors before anything is done."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.almanac.conftest import Almanac
from tests.support.dask_cluster import DaskCluster

PLACE = ("--cluster", "ft", "--hosts", "node[0001-0008]", "--slots", 2)


def test_a_placement_simulations_and_circuits_are_those_of_one_machine(
    loaded: Almanac, dask: DaskCluster
) -> None:
    there = ("--scheduler", dask.address)
    search = ("map", "cg", *PLACE, "--steps", 4000, "--seeds", 2, "--workers", 3, "--json")
    found, here = loaded(*search, *there), loaded(*search)
    assert (found.code, here.code) == (0, 0), found.err
    assert f"3 workers with 3 threads at {dask.address}" in found.err
    assert found.json["placement"] == here.json["placement"]

    other = loaded("map", "cg", *PLACE, "--strategy", "in-order", "--steps", 1, "--json").json["placement"]
    both = ("--placement", found.json["placement"], "--placement", other)
    replay = ("simulate", "cg", "--cluster", "ft", *both, "--json")
    runs, again = loaded(*replay, *there), loaded(*replay)
    assert (runs.code, again.code) == (0, 0), runs.err
    fields = [[one["completion_seconds"] for one in call.json["runs"]] for call in (runs, again)]
    assert fields[0] == fields[1]

    switch = ("--nodes", 8, "--max-degree", 3, "--max-edges", 12, "--link-speed", 1e9)
    plan = ("reconfigure", "cg", *switch, "--trials", 5, "--seeds", 2, "--json")
    circuits, alone = loaded(*plan, *there), loaded(*plan)
    assert (circuits.code, alone.code) == (0, 0), circuits.err
    for name in ("seed", "throughput", "circuits"):
        assert circuits.json[name] == alone.json[name]


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (("--scheduler", "localhost:8786"), 1, "an address is of the form tcp://HOST:PORT"),
        (("--scheduler", "tcp://127.0.0.1:9"), 1, "no scheduler answers"),
        (("--scheduler", "tcp://127.0.0.1:9", "--pareto"), 2, "--scheduler: not with --pareto or --keep"),
        (("--seeds", 2, "--keep", "p1"), 2, "--seeds: not with --pareto or --keep"),
    ],
)
def test_what_cannot_run_on_a_cluster_is_an_error(
    offline: Almanac, more: tuple[object, ...], code: int, message: str
) -> None:
    call = offline("map", "cg", *PLACE, *more)
    assert call.code == code
    assert message in call.err


def test_the_missing_part_is_named_with_the_command_that_installs_it(
    offline: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(name: str) -> object:
        return None if name == "distributed" else find_spec(name)

    monkeypatch.setattr("registry.installation.find_spec", none)
    call = offline("map", "cg", *PLACE, "--scheduler", "tcp://127.0.0.1:9")
    assert call.code == 1
    assert "the optional package distributed is not installed; install it with: " in call.err
    assert "[distributed]" in call.err
