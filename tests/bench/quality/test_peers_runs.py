"""Results of other tools that are kept from one run of the comparison to the next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.quality.peers import __main__ as command
from bench.quality.peers.measure import METRICS, score
from bench.support.instances import Contest
from ingest.generate.stencils import shuffled, stencil
from ingest.generate.tori import torus
from mapping.placement.strategies.baselines import in_order
from registry.model import Allocation


def small(seed: int | None = None) -> Contest:
    fabric = torus((2, 4))
    profile = stencil((2, 4), 5)
    return Contest(
        fabric=fabric,
        profile=profile if seed is None else shuffled(profile, seed),
        allocation=Allocation.of(fabric, fabric.hosts.tolist()),
    )


class Bench:
    """The command on one small instance, with other tools replaced by ranks in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, output: Path) -> None:
        self.runs = 0
        self.searches = 0
        self.contest = small()
        self.output = output
        monkeypatch.setattr(command, "run_peers", self.run_peers)
        monkeypatch.setattr(command, "measure", self.measure)
        monkeypatch.setattr(command, "generated", dict)
        monkeypatch.setattr(command, "structured", lambda: {"torus2x4/stencil8": lambda: self.contest})

    def run_peers(self, contest: Contest, *rest: object) -> list[dict[str, Any]]:
        self.runs += 1
        return [{"peer": "in-order", **score(contest, in_order(8, contest.allocation)), "run": self.runs}]

    def measure(self, contest: Contest, limits: object, peers: list[dict[str, Any]]) -> dict[str, Any]:
        self.searches += 1
        metrics = dict.fromkeys(METRICS, 1.0)
        best = {metric: {"value": 2.0, "peer": "x"} for metric in METRICS}
        return {"bounds": metrics, "peers": peers, "best_peer": best, "ours": []}

    def __call__(self, *options: str) -> None:
        command.main(["--no-folder", "--output", str(self.output), *options])

    @property
    def kept(self) -> dict[str, Any]:
        (one,) = json.loads(command.peer_runs(self.output).read_text()).values()
        found: dict[str, Any] = one
        return found


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    return Bench(monkeypatch, tmp_path / "peers.json")


def test_other_tools_are_run_alone_and_then_kept(bench: Bench) -> None:
    bench("--peers-only")
    assert (bench.runs, bench.searches, bench.output.exists()) == (1, 0, False)
    bench("--keep-peers")
    assert (bench.runs, bench.searches) == (1, 1)
    (found,) = json.loads(bench.output.read_text())["instances"].values()
    assert found["peers"] == bench.kept["results"]
    assert found["peers_date"] == bench.kept["date"]


def test_without_the_option_other_tools_are_run_again(bench: Bench) -> None:
    bench("--peers-only")
    bench()
    assert (bench.runs, bench.kept["results"][0]["run"]) == (2, 2)


def test_kept_results_need_the_same_limit_and_instance(bench: Bench) -> None:
    bench("--peers-only")
    bench("--peers-only", "--keep-peers", "--peer-seconds", "5")
    assert (bench.runs, bench.kept["peer_seconds"]) == (2, 5.0)
    bench.contest = small(seed=1)
    bench("--peers-only", "--keep-peers", "--peer-seconds", "5")
    assert bench.runs == 3
    bench("--peers-only", "--keep-peers", "--peer-seconds", "5")
    assert bench.runs == 3
    assert np.isclose(
        bench.kept["results"][0]["hop_bytes"],
        score(bench.contest, in_order(8, bench.contest.allocation))["hop_bytes"],
    )


def test_a_part_of_the_record_may_come_from_another_machine_and_limit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench()
    both = {"torus2x4/stencil8": small, "torus2x4/other": small}
    monkeypatch.setattr(command, "structured", lambda: both)
    monkeypatch.setattr(command, "machine", lambda: {"processor": "another", "cores": 4})
    bench("--only", "other", "--peer-seconds", "5")
    found = json.loads(bench.output.read_text())["instances"]
    assert list(found) == list(both)
    assert found["torus2x4/other"]["machine"]["processor"] == "another"
    assert found["torus2x4/stencil8"]["machine"] != found["torus2x4/other"]["machine"]
    assert [one["peer_seconds"] for one in found.values()] == [60.0, 5.0]
    page = bench.output.with_suffix(".md").read_text()
    assert "may take 5 or 60 s of processor time." in page
