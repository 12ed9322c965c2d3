"""Slow oracle of a flow model: messages are fluids that share links by weighted max-min fairness.

A message waits for the latencies of its way, then flows. The rates of all that flow rise together, each in
proportion to its weight, until a link is full; what crosses it keeps its rate, the others go on. A rank
begins a message when the one before it is delivered. Bertsekas and Gallager, "Data Networks", 1992, 6.5.2.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass
class _Flow:
    number: int
    rank: int
    way: list[int]
    weight: float
    left: float
    starts_at: float
    rate: float = 0.0


def finished_seconds(case: dict[str, Any], *, latency: bool) -> list[float]:
    """Return when each message is delivered.

    Parameters
    ----------
    case : dict
        A case of ``bench.simgrid.cases.case_json``.
    latency : bool
        Whether latencies count, and weigh: the share of a flow is in inverse proportion to that of its way.
    """
    capacity = np.array([rate for rate, _ in case["links"]])
    ways = {(source, target): way for source, target, way in case["routes"]}
    waiting: dict[int, deque[int]] = {}
    for number, message in enumerate(case["messages"]):
        waiting.setdefault(message[0], deque()).append(number)
    found, now = [0.0] * len(case["messages"]), 0.0
    active: list[_Flow] = []
    idle = sorted(waiting)
    while idle or active:
        for rank in idle:
            if waiting[rank]:
                number = waiting[rank].popleft()
                _, receiver, size, ready = case["messages"][number]
                way = ways[rank, receiver]
                wait = sum(case["links"][link][1] for link in way) if latency else 0.0
                begins = max(ready, now) + wait
                active.append(_Flow(number, rank, way, 1.0 / wait if wait else 1.0, float(size), begins))
        flowing = [flow for flow in active if flow.starts_at <= now]
        for flow, rate in zip(flowing, shares(flowing, capacity), strict=True):
            flow.rate = rate
        ends = [now + flow.left / flow.rate for flow in flowing]
        begins_at = [flow.starts_at for flow in active if flow.starts_at > now]
        after = min([*ends, *begins_at], default=math.inf)
        done = [flow for flow, end in zip(flowing, ends, strict=True) if end <= after * (1 + 1e-15)]
        for flow in flowing:
            flow.left -= flow.rate * (after - now)
        for flow in done:
            found[flow.number] = after
            active.remove(flow)
        now, idle = after, [flow.rank for flow in done]
        if not active and not any(waiting[rank] for rank in idle):
            idle = []
    return found


def shares(flows: list[_Flow], capacity: Floats) -> list[float]:
    crosses = np.zeros((len(flows), len(capacity)), bool)
    for row, flow in enumerate(flows):
        crosses[row, flow.way] = True
    weight = np.array([flow.weight for flow in flows])
    rate, left = np.zeros(len(flows)), capacity.copy()
    rising = np.ones(len(flows), bool)
    while rising.any():
        load = (weight * rising) @ crosses
        level = np.divide(left, load, out=np.full(len(left), np.inf), where=load > 0)
        full = level <= level.min() * (1 + 1e-12)
        stopped = rising & crosses[:, full].any(axis=1)
        rate[stopped] = weight[stopped] * level.min()
        left -= rate[stopped] @ crosses[stopped]
        left = np.maximum(left, 0.0)
        rising &= ~stopped
    return [float(one) for one in rate]
