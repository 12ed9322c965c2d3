"""Compute the ratios of our results to the best peer, their geometric means, and a table of them."""

from __future__ import annotations

import math
from typing import Any

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
