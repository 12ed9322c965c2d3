"""Results of other tools that are kept from one run of the comparison to the next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.quality.peers import __main__ as command
from bench.quality.peers.measure import METRICS, score
from bench.support.instances import Contest, on_all
from ingest.generate.stencils import shuffled, stencil
from ingest.generate.tori import torus
from mapping.placement.strategies.baselines import in_order

SMALL = on_all(torus((2, 4)), stencil((2, 4), 5))
OTHER = on_all(torus((2, 4)), shuffled(stencil((2, 4), 5), 1))


class Bench:
    """The command on one small instance, with other tools replaced by ranks in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, output: Path) -> None:
        self.runs = 0
        self.searches = 0
        self.contest = SMALL
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
        best = {metric: {"value": 2.0, "peer": "x"} for metric in METRICS}
        return {"bounds": dict.fromkeys(METRICS, 1.0), "peers": peers, "best_peer": best, "ours": []}

    def __call__(self, *options: str) -> None:
        command.main(["--no-folder", "--output", str(self.output), *options])

    @property
    def kept(self) -> dict[str, Any]:
        (one,) = json.loads(command.peer_runs(self.output).read_text()).values()
        found: dict[str, Any] = one
        return found

    @property
    def instances(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.output.read_text())["instances"]
        return found


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    return Bench(monkeypatch, tmp_path / "peers.json")


def test_other_tools_are_run_alone_and_then_kept_if_asked(bench: Bench) -> None:
    bench("--peers-only")
    assert (bench.runs, bench.searches, bench.output.exists()) == (1, 0, False)
    bench("--keep-peers")
    assert (bench.runs, bench.searches) == (1, 1)
    (found,) = bench.instances.values()
    assert (found["peers"], found["peers_date"]) == (bench.kept["results"], bench.kept["date"])
    bench()
    assert (bench.runs, bench.kept["results"][0]["run"]) == (2, 2)


def test_kept_results_need_the_same_limit_and_instance(bench: Bench) -> None:
    bench("--peers-only")
    bench("--peers-only", "--keep-peers", "--peer-seconds", "5")
    assert (bench.runs, bench.kept["peer_seconds"]) == (2, 5.0)
    bench.contest = OTHER
    for _ in range(2):
        bench("--peers-only", "--keep-peers", "--peer-seconds", "5")
        assert bench.runs == 3
    expected = score(OTHER, in_order(8, OTHER.allocation))["hop_bytes"]
    assert np.isclose(bench.kept["results"][0]["hop_bytes"], expected)


def test_a_part_of_the_record_may_come_from_another_machine_and_limit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench()
    both = ["torus2x4/stencil8", "torus2x4/other"]
    monkeypatch.setattr(command, "structured", lambda: dict.fromkeys(both, lambda: SMALL))
    monkeypatch.setattr(command, "machine", lambda: {"processor": "another", "cores": 4})
    bench("--only", "other", "--peer-seconds", "5")
    assert list(bench.instances) == both
    first, second = bench.instances.values()
    assert second["machine"]["processor"] == "another"
    assert first["machine"] != second["machine"]
    assert (first["peer_seconds"], second["peer_seconds"]) == (60.0, 5.0)
    assert "may take 5 or 60 s of processor time." in bench.output.with_suffix(".md").read_text()
