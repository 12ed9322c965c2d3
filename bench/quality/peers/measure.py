"""Measure an instance at several limits against other tools, and make the table of all."""

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
from bench.quality.peers.tools import Answer, answers
from bench.support.instances import Contest
from bench.support.searches import searched
from mapping.cost.metrics import evaluate
from mapping.cost.report import RANDOM_SEEDS
from mapping.distances.cost_model import CostModel
from mapping.placement.methods.baselines import in_order, random_placement
from registry.model import Placement

OPEN = 1.02
"""The best peer's congestion is open where it is above this many times the certified bound."""
ROUNDING = 1e-6
"""Recorded values are printed with three decimals."""
TARGETS: dict[tuple[str, str, float], float] = {
    ("hop-bytes", "hop_bytes", 1.0): 0.88,
    ("hop-bytes", "hop_bytes", 30.0): 0.86,
    ("congestion", "congestion_seconds", 1.0): 0.60,
    ("congestion", "congestion_seconds", 30.0): 0.46,
    ("congestion", "network_congestion_seconds", 30.0): 0.52,
}
"""Geometric mean aimed for, by objective, metric and seconds."""
NOISE = 1.01
"""A result is worse than one of a shorter search where it is above this many times that."""
PAIRS = (
    ("hop-bytes", "hop_bytes"),
    ("congestion", "congestion_seconds"),
    ("congestion", "network_congestion_seconds"),
)


def ratio(found: dict[str, Any], run: dict[str, Any], metric: str) -> float:
    """Return our value over the best peer's; 1 if both are zero."""
    peer = float(found["best_peer"][metric]["value"])
    mine = float(run[metric])
    if peer == 0.0:
        return 1.0 if mine == 0.0 else math.inf
    return mine / peer


def is_open(found: dict[str, Any], metric: str) -> bool:
    """Return True if the bound leaves room for a better result than the best peer's."""
    return float(found["best_peer"][metric]["value"]) > OPEN * float(found["bounds"][metric])


def summary(instances: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each objective, metric and time limit.

    Worst congestion is averaged over instances whose best peer is not at the bound already; on the others
    ours must meet the peer.
    """
    rows = []
    limits = sorted({run["seconds"] for found in instances.values() for run in found["ours"]})
    for objective, metric in PAIRS:
        for seconds in limits:
            ratios = {
                (name, is_open(found, metric)): ratio(found, run, metric)
                for name, found in instances.items()
                for run in found["ours"]
                if (run["objective"], run["seconds"]) == (objective, seconds)
            }
            counted = [
                value for (_, opened), value in ratios.items() if opened or metric != "congestion_seconds"
            ]
            before = [shorter for shorter in limits if shorter < seconds][-1:]
            closed = [value for (_, opened), value in ratios.items() if not opened]
            worst = max(ratios, key=lambda key: ratios[key])
            rows.append(
                {
                    "objective": objective,
                    "metric": metric,
                    "seconds": seconds,
                    "instances": len(counted),
                    "geometric_mean": geometric_mean(counted),
                    "target": TARGETS.get((objective, metric, seconds)),
                    "largest": ratios[worst],
                    "largest_of": worst[0],
                    "above_1": sum(value > 1 + ROUNDING for value in ratios.values()),
                    "worse_with_time": [
                        name
                        for name, found in instances.items()
                        for shorter in before
                        if _value(found, objective, metric, seconds)
                        > NOISE * _value(found, objective, metric, shorter)
                    ],
                    "at_bound": len(closed),
                    "at_bound_met": sum(value <= 1 + ROUNDING for value in closed),
                }
            )
    return rows


def _value(found: dict[str, Any], objective: str, metric: str, seconds: float) -> float:
    """Return our value of a search; NaN if there was none."""
    runs = {(run["objective"], run["seconds"]): float(run[metric]) for run in found["ours"]}
    return runs.get((objective, seconds), math.nan)


def geometric_mean(values: list[float]) -> float | None:
    """Return the geometric mean, or None if there are no values."""
    positive = [max(value, 1e-12) for value in values]
    return math.exp(sum(map(math.log, positive)) / len(positive)) if positive else None


def markdown(record: dict[str, Any]) -> str:
    """Return the record as a page: means, every instance, and tools without result."""
    instances = record["instances"].values()
    machines = sorted(
        {f"{one['machine']['processor']}, {one['machine']['cores']} cores" for one in instances}
    )
    limits = sorted({one["peer_seconds"] for one in instances})
    lines = [
        "# Ours beside other tools",
        "",
        f"{record['date']}; {' and '.join(machines)}. Written by "
        "`python -m bench.quality.peers`. Ratios are ours over the best of all peers of that instance and "
        "metric; congestion counts where that peer is more than 2% above the certified bound. A process of "
        f"another tool may take {' or '.join(f'{limit:g}' for limit in limits)} s of processor time.",
        *_means(record["summary"]),
    ]
    if record["all_hosts"]:
        lines += ["", "With every host of the machine to choose from, against peers on the first ones:"]
        lines += _means(record["all_hosts"])
    for objective, metric in PAIRS:
        lines += [
            "",
            f"## {metric}, objective {objective}",
            *_instances(record["instances"], objective, metric),
        ]
    lines += ["", "## Tools that gave nothing", ""]
    lines += [f"- {tool}: not installed ({remedy})" for tool, remedy in record["missing"].items()]
    for name, found in sorted(record["instances"].items()):
        lines += [f"- {name}, {peer['peer']}: {peer['why']}" for peer in found["peers"] if peer.get("why")]
    return "\n".join(lines) + "\n"


def _means(rows: list[dict[str, Any]]) -> list[str]:
    head = "objective | metric | seconds | instances | mean | target | largest | above 1 | "
    head += "worse than with less time | at bound, met"
    return ["", f"| {head} |", "|" + "---|" * 10, *map(_mean, rows)]


def _mean(row: dict[str, Any]) -> str:
    cells = (
        row["objective"],
        row["metric"],
        f"{row['seconds']:g}",
        str(row["instances"]),
        _number(row["geometric_mean"]),
        _number(row["target"]),
        f"{row['largest']:.3f} ({row['largest_of']})",
        str(row["above_1"]),
        ", ".join(row["worse_with_time"]),
        f"{row['at_bound']}, {row['at_bound_met']}",
    )
    return f"| {' | '.join(cells)} |"


def _instances(instances: dict[str, dict[str, Any]], objective: str, metric: str) -> list[str]:
    limits = sorted({run["seconds"] for found in instances.values() for run in found["ours"]})
    titles = " | ".join(f"{seconds:g} s" for seconds in limits)
    head = f"| instance | measured | best peer | whose | bound | {titles} |"
    lines = ["", head, "|" + "---|" * (5 + len(limits))]
    for name, found in sorted(instances.items()):
        peer = found["best_peer"][metric]
        runs = {run["seconds"]: run for run in found["ours"] if run["objective"] == objective}
        cells = " | ".join(f"{ratio(found, runs[s], metric):.3f}" if s in runs else "" for s in limits)
        bound = found["bounds"][metric]
        day = found["date"][:10]
        lines.append(f"| {name} | {day} | {peer['value']:.6g} | {peer['peer']} | {bound:.6g} | {cells} |")
    return lines


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


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
    """Time limits."""

    seconds: tuple[float, ...]
    peer_seconds: float
    seed: int = 0


def run_peers(contest: Contest, limits: Limits, recorded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return results of ranks in order and at random, recorded ones, and those of every installed tool."""
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
    placement = searched(
        fabric, profile, allocation, objective=objective, seconds=seconds + set_up, seed=seed
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
        searched(fabric, profile, allocation, objective=objective, steps=SET_UP_STEPS)
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
