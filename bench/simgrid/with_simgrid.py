"""Finishing times of flows by SimGrid's flow model. Run by the system's Python, whose bindings Debian ships:

    /usr/bin/python3 bench/simgrid/with_simgrid.py CASE.json [--without-latency] > RESULT.json

CASE.json is of ``bench.simgrid.cases.case_json``. Needs python3-simgrid and nothing of this project.
Every message of a rank begins when the one before it is delivered, and not before its time. A link and
direction is a link of its own, so that opposite flows do not meet.

The model is SimGrid's CM02 with all factors 1: a flow waits for the latencies of its route, and then gets its
share of every link that it crosses, by weighted max-min fairness. Weights are the inverse of the route's
latency, as TCP's are of the round trip; ``--without-latency`` makes all latencies 0, and weights equal.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any
from xml.sax.saxutils import quoteattr

import simgrid  # type: ignore[import-not-found]  # the system's, not of this project

VERSION = 1
"""Of this script: another one where results may differ."""
SETTINGS = (
    *("network/model:CM02", "network/latency-factor:1", "network/bandwidth-factor:1", "network/weight-S:0"),
    *("network/crosstraffic:0", "network/optim:Full", "surf/precision:1e-12"),
)
"""All flows are shared out anew at every event (Full): by the default (Lazy), 3.32 lets some keep a rate that
others need, where weights differ."""
HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="world" routing="Full">
"""


def platform(case: dict[str, Any], *, latency: bool) -> str:
    """Build hosts, links and routes in SimGrid."""
    lines = [f"<host id={quoteattr(name)} speed='1Gf'/>" for name in case["hosts"]]
    for number, (capacity, seconds) in enumerate(case["links"]):
        waits = seconds if latency else 0.0
        lines.append(f"<link id='l{number}' bandwidth='{capacity!r}Bps' latency='{waits!r}s'/>")
    for source, target, way in case["routes"]:
        ends = f"src={quoteattr(case['hosts'][source])} dst={quoteattr(case['hosts'][target])}"
        crossed = "".join(f"<link_ctn id='l{link}'/>" for link in way)
        lines.append(f"<route {ends} symmetrical='NO'>{crossed}</route>")
    return HEAD + "\n".join(lines) + "\n</zone></platform>\n"


def simulated(case: dict[str, Any], *, latency: bool) -> list[float]:
    """Return when each message was delivered, in seconds, in the order of the case."""
    engine = simgrid.Engine([sys.argv[0], *(f"--cfg={setting}" for setting in SETTINGS)])
    with tempfile.NamedTemporaryFile("w", suffix=".xml", delete=False) as file:
        file.write(platform(case, latency=latency))
    try:
        engine.load_platform(file.name)
    finally:
        os.unlink(file.name)
    finished = [0.0] * len(case["messages"])
    by_rank: dict[int, list[int]] = {}
    for number, message in enumerate(case["messages"]):
        by_rank.setdefault(message[0], []).append(number)

    def send(numbers: list[int]) -> None:
        for number in numbers:
            _, _, size, ready = case["messages"][number]
            if ready > _clock():
                simgrid.this_actor.sleep_until(ready)
            simgrid.Mailbox.by_name(f"m{number}").put(number, size)
            finished[number] = _clock()

    def receive(number: int) -> None:
        simgrid.Mailbox.by_name(f"m{number}").get()

    for rank, numbers in by_rank.items():
        _start(f"s{rank}", simgrid.Host.by_name(case["hosts"][rank]), send, numbers)
    for number, message in enumerate(case["messages"]):
        _start(f"r{number}", simgrid.Host.by_name(case["hosts"][message[1]]), receive, number)
    engine.run()
    return finished


def _clock() -> float:
    """Return the simulated seconds; the name differs between versions."""
    engine = simgrid.Engine
    return float(engine.clock if hasattr(engine, "clock") else engine.get_clock())


def _start(name: str, host: Any, function: Any, argument: Any) -> None:
    if hasattr(host, "add_actor"):
        host.add_actor(name, function, argument)
        return
    simgrid.Actor.create(name, host, function, argument)


def main() -> None:
    """Read a case, simulate it, print the result."""
    path, *rest = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        case = json.load(file)
    latency = "--without-latency" not in rest
    finished = simulated(case, latency=latency)
    times = {
        "simgrid": simgrid.simgrid_version,
        "script": VERSION,
        "settings": list(SETTINGS),
        "finished_seconds": finished,
    }
    json.dump(times, sys.stdout)


if __name__ == "__main__":
    main()
