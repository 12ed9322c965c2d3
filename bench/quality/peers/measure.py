"""Run our search and the other tools on an instance, all scored by the same exact evaluation."""

from __future__ import annotations

import json
import math
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.quality.peers.files import first_slots
from bench.quality.peers.process import Answer
from bench.quality.peers.tools import answers
from bench.support.instances import Contest
from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate
from mapping.evaluation.report import RANDOM_SEEDS
from mapping.placement.search.options import SearchOptions
from mapping.placement.search.placing import place
from mapping.placement.strategies.baselines import in_order, random_placement
from registry.model import Placement

METRICS = ("congestion_seconds", "network_congestion_seconds", "hop_bytes")
OBJECTIVES = ("congestion", "hop-bytes")
APART = 1.0
"""Limits up to this many seconds do not count set-up: it is measured and added."""
SET_UP_STEPS = 16
"""So few steps take little time, and every refiner of the default members gets one, for which it prepares."""
COUNTS_SWITCHES = ("tianhe2304",)
"""Hosts whose recorded hop-bytes count switches: a hop less for every byte (Li et al. 2020)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time limits.

    Attributes
    ----------
    seconds : of ours, one search each
    peer_seconds : processor time of a process of another tool
    seed : of ours
    """

    seconds: tuple[float, ...]
    peer_seconds: float
    seed: int = 0


def run_peers(contest: Contest, limits: Limits, recorded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return results of ranks in order and at random, recorded ones, and those of every installed tool.

    Parameters
    ----------
    recorded : lines of ``peers.jsonl`` that belong to the instance
    """
    theirs = _for_peers(contest)
    peers = _baselines(theirs) + _recorded(recorded, float(contest.profile.bytes.sum()))
    with tempfile.TemporaryDirectory() as folder:
        peers += [_scored(theirs, answer) for answer in answers(theirs, Path(folder), limits.peer_seconds)]
    return peers


def same_instance(contest: Contest, peers: list[dict[str, Any]]) -> bool:
    """Return True if recorded results of peers have the score of ranks in order of this instance."""
    now = _baselines(_for_peers(contest))[0]
    return any(
        peer["peer"] == now["peer"] and all(math.isclose(peer[metric], now[metric]) for metric in METRICS)
        for peer in peers
    )


def measure(contest: Contest, limits: Limits, peers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the record of an instance: bounds, peers with reasons for failures, and our results."""
    profile, allocation = contest.profile, contest.allocation
    given = in_order(profile.ranks, allocation)
    bounds = evaluate(
        contest.fabric, profile, given, costs=CostModel(routing="shortest-paths"), bounds=True
    ).bounds
    return {
        "hosts": len(allocation),
        "slots": int(allocation.slots.sum()),
        "vertices": len(contest.fabric),
        "ranks": profile.ranks,
        "pairs": profile.pairs,
        "bounds": {metric: bounds[metric].value for metric in METRICS},
        "peers": peers,
        "best_peer": best(peers),
        "ours": [
            ours(contest, objective, seconds, limits.seed)
            for objective in OBJECTIVES
            for seconds in limits.seconds
        ],
    }


def ours(contest: Contest, objective: str, seconds: float, seed: int) -> dict[str, Any]:
    """Run one search with the default portfolio, given only the objective and the time."""
    fabric, profile, allocation = contest.fabric, contest.profile, contest.allocation
    set_up = _set_up(contest, objective) if seconds <= APART else 0.0
    begin = time.perf_counter()
    placement = place(
        fabric,
        profile,
        allocation,
        SearchOptions(objective=objective, seconds=seconds + set_up, seed=seed),
        CostModel(routing="shortest-paths"),
    )
    wall = time.perf_counter() - begin
    return {
        "objective": objective,
        "seconds": seconds,
        "set_up_seconds": set_up,
        "wall_seconds": wall,
        "seed": seed,
        "strategy": placement.strategy,
        "steps": placement.steps,
        **score(contest, placement),
    }


def score(contest: Contest, placement: Placement) -> dict[str, float]:
    """Return the three metrics, exact, over all shortest paths."""
    found = evaluate(contest.fabric, contest.profile, placement, costs=CostModel(routing="shortest-paths"))
    return {metric: float(getattr(found, metric)) for metric in METRICS}


def best(peers: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return for each metric the lowest value of a valid result, and its peer."""
    valid = [peer for peer in peers if not peer.get("why")]
    found = {}
    for metric in METRICS:
        peer = min(valid, key=lambda one: float(one[metric]))
        found[metric] = {"value": peer[metric], "peer": peer["peer"]}
    return found


def read_recorded(folder: Path | None) -> list[dict[str, Any]]:
    """Read all lines of a folder's ``peers.jsonl``; none if there is no such file."""
    path = None if folder is None else folder / "peers.jsonl"
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def _set_up(contest: Contest, objective: str) -> float:
    """Return the wall seconds of a search of few steps, of the second run: the first compiles."""
    fabric, profile, allocation = contest.fabric, contest.profile, contest.allocation
    for _ in range(2):
        begin = time.perf_counter()
        place(
            fabric,
            profile,
            allocation,
            SearchOptions(objective=objective, steps=SET_UP_STEPS),
            CostModel(routing="shortest-paths"),
        )
        seconds = time.perf_counter() - begin
    return seconds


def _for_peers(contest: Contest) -> Contest:
    """Return the instance with the slots that other tools get."""
    if not contest.peers_on_first:
        return contest
    return replace(contest, allocation=first_slots(contest.allocation, contest.profile.ranks))


def _baselines(contest: Contest) -> list[dict[str, Any]]:
    profile, allocation = contest.profile, contest.allocation
    random = [score(contest, random_placement(profile.ranks, allocation, seed)) for seed in RANDOM_SEEDS]
    mean = {metric: float(np.mean([one[metric] for one in random])) for metric in METRICS}
    return [
        {"peer": "in-order", **score(contest, in_order(profile.ranks, allocation))},
        {"peer": f"random, mean of {len(RANDOM_SEEDS)}", **mean},
    ]


def _recorded(lines: list[dict[str, Any]], total_bytes: float) -> list[dict[str, Any]]:
    """Return recorded results in our terms; invalid ones are marked."""
    found = []
    for line in lines:
        left_out = total_bytes if line["host"] in COUNTS_SWITCHES else 0.0
        found.append(
            {
                "peer": f"{line['peer']} (recorded)",
                "cpu_seconds": line["cpu_s"],
                "congestion_seconds": float(line["congestion"]),
                "network_congestion_seconds": float(line["network_congestion"]),
                "hop_bytes": float(line["hop_bytes"]) + left_out,
                "why": f"{line['violations']} hosts with two ranks" if line["violations"] else "",
            }
        )
    return found


def _scored(contest: Contest, answer: Answer) -> dict[str, Any]:
    fields = {"peer": answer.tool, "seconds": answer.seconds, "cpu_seconds": answer.cpu_seconds}
    if answer.slot_of_rank is None:
        return {**fields, "why": answer.why}
    first = first_slots(contest.allocation, contest.profile.ranks)
    allocation = first if "first slots" in answer.tool else contest.allocation
    placement = Placement(
        host_of_rank=allocation.host_of_slot[answer.slot_of_rank],
        allocation=contest.allocation,
        strategy=answer.tool,
    )
    return {**fields, **score(contest, placement), "why": ""}
