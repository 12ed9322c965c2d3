"""What pages ask of the database: few statements each, whose plans scan nothing that grows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import neo4j
import pytest
import streamlit as st

from almanac.demo.fill import CLUSTER, RUNNING
from bench.dashboard.statements import CountingDatabase, Session
from registry.database.driver import Database
from registry.registry import Registry
from tests.dashboard.conftest import Connect
from tests.registry.test_registry import planner, statements
from tests.support.apps import PAGES

__all__ = ["planner"]

MOST = 4
"""Statements of a page that nobody looked at before: three, and one for the bar, which all viewers share."""
MORE = {
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
def asked(connect: Connect, hottest: tuple[str, str]) -> dict[str, tuple[list[str], list[str]]]:
    """The statements of two viewers of every page, also where its address names something."""
    link, switch = hottest
    here = {"cluster": CLUSTER}
    addresses: dict[str, tuple[str, dict[str, str]]] = {
        "overview": ("", here),
        **{name: (name, here) for name in PAGES if name},
        "a link": ("fabric", {**here, "link": link}),
        "ranks on a link": ("fabric", {**here, "link": link, "show": "ranks"}),
        "errors of a link": ("fabric", {**here, "link": link, "show": "errors"}),
        "a switch": ("fabric", {**here, "switch": switch}),
        "history of a switch": ("fabric", {**here, "switch": switch, "show": "history"}),
        "errors on the map": ("fabric", {**here, "colour": "errors"}),
        "changes on the map": ("fabric", {**here, "colour": "changes"}),
        "counters": ("fabric", {**here, "colour": "difference"}),
        "a change": ("what-if", {**here, "down": link}),
        "filtered jobs": ("jobs", {**here, "state": "RUNNING"}),
        "a job": ("job", {"job": f"{CLUSTER}/{next(iter(RUNNING))}"}),
        "two clusters": ("history", {"compare": "clusters"}),
    }
    with connect() as registry:
        newest, other = (one.id for one in registry.placements.history(limit=2))
        scanned = registry.fabrics.clusters()[0].first_observed_at.isoformat()
        addresses |= {
            "the past": ("fabric", {**here, "at": scanned}),
            "a placement": ("job", {"placement": newest}),
            "a placement on the map": ("fabric", {"placement": newest}),
            "two placements": ("history", {"compare": "placements", "a": newest, "b": other}),
        }
        return {name: two_viewers(registry, *address) for name, address in addresses.items()}


def two_viewers(registry: Registry, path: str, address: dict[str, str]) -> tuple[list[str], list[str]]:
    """The statements of a page that nobody looked at before, and those of a second viewer."""
    st.cache_resource.clear()
    counting = CountingDatabase(registry.database)
    first, second = (Session(counting, path, address).run() for _ in range(2))
    st.cache_resource.clear()
    return first, second


def test_no_page_runs_more_statements_and_none_for_a_second_viewer(
    asked: dict[str, tuple[list[str], list[str]]],
) -> None:
    many = {name: len(found) for name, (found, _) in asked.items() if len(found) > MORE.get(name, MOST)}
    assert not many
    assert all(found for found, _ in asked.values())
    assert not {name: again for name, (_, again) in asked.items() if again}


def test_every_statement_of_a_page_is_a_constant_whose_plan_is_tested(
    asked: dict[str, tuple[list[str], list[str]]],
) -> None:
    known = {text for _, text in statements()}
    assert not {name: set(found) - known for name, (found, _) in asked.items() if set(found) - known}


def test_no_page_scans_what_grows(  # plans depend on what the database holds
    asked: dict[str, tuple[list[str], list[str]]], filled_neo4j: Database, planner: neo4j.Session
) -> None:
    wrong = []
    for statement in sorted({text for found, _ in asked.values() for text in found}):
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
