"""What pages ask of the database: few statements each, whose plans scan nothing that grows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import neo4j
import numpy as np
import pytest

from almanac.demo.fill import CLUSTER
from bench.dashboard.statements import ran
from dashboard.app import MOVED, PAGES
from mapping.service.live import traffic
from mapping.traffic.device_names import link_text
from registry.registry import Registry
from tests.registry.test_registry import planner, statements

__all__ = ["planner"]

MOST = 4
"""Statements of a page that nobody looked at before: three, and one for the bar, which all viewers share."""
MORE = {
    "Overview": 9,
    "overview": 9,
    "a job": 5,
    "a placement": 6,
    "two placements": 5,
    "a link": 6,
    "a switch": 6,
    "errors on the map": 6,
    "ranks on a link": 7,
    "history of a switch": 7,
    "errors of a link": 8,
}
"""Statements of further pages, whose results all viewers share until something is saved. Overview: three
for the checks of the fabric, two for the counters of a period, one for the regressions. A job and two
placements: one for measured runs. A placement: one more that finds its job. Fabric: two for the counters of a
period (times, then those that are compared), one or two for ranks, history, or findings."""
GROWING = (
    *("Placement", "Job", "Allocation", "LinkLoads", "Advice", "Simulation", "Trace", "Reconfiguration"),
    *("Device", "DeviceState", "Content", "Routing", "CounterSweep", "MeasuredRun"),
)
"""Labels whose nodes become many with the years, or are large: they are found by an index."""
WHOLE = {
    "collect(p.congestion_seconds) AS congestion_seconds": "Placement",
    "collect(DISTINCT j.user) AS users": "Job",
    "MATCH (n:Simulation)\nRETURN n.id AS id": "Simulation",
    "MATCH (n:MeasuredRun)\nWHERE ($application IS NULL OR": "MeasuredRun",
}
"""What reads all of a label, and must: the history judges each placement by those before it, as columns; jobs
are filtered by the users and states that there are; runs that were simulated or measured are listed."""


@pytest.fixture(scope="module")
def opened(demonstration: Path) -> Iterator[Registry]:
    with Registry.open(home=demonstration, idle_seconds=300) as registry:
        yield registry


@pytest.fixture(scope="module")
def asked(opened: Registry) -> dict[str, list[str]]:
    """The statements of every page, also where its address names something."""
    live = traffic(opened, CLUSTER)
    link = link_text(live.fabric, int(np.argmax(live.shared.seconds)))
    switch = live.fabric.names[int(live.fabric.switches[0])]
    job = f"{CLUSTER}/{live.shared.jobs[0].job}"
    newest = opened.placements.history(limit=2)
    scanned = opened.fabrics.clusters()[0].first_observed_at.isoformat()
    here = {"cluster": CLUSTER}
    addresses: dict[str, tuple[str, dict[str, str]]] = {
        entry.title: ("" if entry is PAGES[0] else entry.name, here) for entry in PAGES
    }
    addresses |= {old: (old, here) for old in MOVED}
    addresses |= {
        "a link": ("fabric", {**here, "link": link}),
        "ranks on a link": ("fabric", {**here, "link": link, "show": "ranks"}),
        "errors of a link": ("fabric", {**here, "link": link, "show": "errors"}),
        "a switch": ("fabric", {**here, "switch": switch}),
        "history of a switch": ("fabric", {**here, "switch": switch, "show": "history"}),
        "errors on the map": ("fabric", {**here, "colour": "errors"}),
        "changes on the map": ("fabric", {**here, "colour": "changes"}),
        "the past": ("fabric", {**here, "at": scanned}),
        "counters": ("fabric", {**here, "colour": "difference"}),
        "a placement on the map": ("fabric", {"placement": newest[0].id}),
        "a change": ("what-if", {**here, "down": link}),
        "filtered jobs": ("jobs", {**here, "state": "RUNNING"}),
        "a job": ("job", {"job": job}),
        "a placement": ("job", {"placement": newest[0].id}),
        "two placements": ("history", {"compare": "placements", "a": newest[0].id, "b": newest[1].id}),
        "two clusters": ("history", {"compare": "clusters"}),
    }
    return {name: ran(opened.database, path, address) for name, (path, address) in addresses.items()}


def test_no_page_runs_more_statements(asked: dict[str, list[str]]) -> None:
    many = {name: len(found) for name, found in asked.items() if len(found) > MORE.get(name, MOST)}
    assert not many
    assert all(asked.values())


def test_every_statement_of_a_page_is_a_constant_whose_plan_is_tested(asked: dict[str, list[str]]) -> None:
    known = {text for _, text in statements()}
    unknown = {name: [text for text in found if text not in known] for name, found in asked.items()}
    assert not [text for found in unknown.values() for text in found]


def test_no_page_scans_what_grows(asked: dict[str, list[str]], planner: neo4j.Session) -> None:
    wrong = []
    for statement in sorted({text for found in asked.values() for text in found}):
        plan = planner.run("EXPLAIN " + statement).consume().plan
        assert plan is not None
        scanned = {label for label in scans(plan) if label in GROWING}
        scanned -= {label for part, label in WHOLE.items() if part in statement}
        if scanned:
            wrong.append((sorted(scanned), statement))
    assert not [(labels, text[:90], text[-90:]) for labels, text in wrong]


def scans(plan: dict[str, Any]) -> Iterator[str]:
    """Labels that a plan reads all nodes of; the empty text for all nodes whatever they are."""
    name = plan["operatorType"].split("@")[0]
    if name.endswith("LabelScan"):
        _, _, label = str(plan["args"].get("Details", "")).partition(":")
        yield label.strip("`")
    elif name == "AllNodesScan":
        yield ""
    for child in plan.get("children", ()):
        yield from scans(child)
