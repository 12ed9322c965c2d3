"""What pages ask of the database: few statements, none scans what grows; and pages that may only read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import neo4j
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from almanac.demo.demo import CLUSTER, RUNNING
from bench.dashboard.statements import CountingDatabase, Session
from dashboard.map.layout import FREE
from dashboard.map.layouts import draw_fabric, free
from mapping.questions.live import traffic
from mapping.traffic.names import link_text
from registry.database.driver import Database, Transaction
from registry.errors import DatabaseError
from registry.registry import Registry
from tests.dashboard.conftest import RING, Connect
from tests.dashboard.test_job import searched
from tests.registry.test_registry import planner, statements
from tests.support.apps import PAGES, location, messages, page

__all__ = ["planner"]

MOST = 4
"""Statements of a page that nobody looked at before: three, and one for the bar, which all viewers share."""
MORE = {
    "overview": 9, "a job": 5, "a placement": 6, "two placements": 5, "a link": 6, "a switch": 6,
    "errors on the map": 6, "ranks on a link": 7, "history of a switch": 7, "errors of a link": 8,
}  # fmt: skip
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

Asked = dict[str, tuple[list[str], list[str]]]


@pytest.fixture(scope="module")
def asked(connect: Connect, hottest: tuple[str, str]) -> Asked:
    """The statements of two viewers of every page, also where its address names something."""
    link, switch = hottest
    here = {"cluster": CLUSTER}
    addresses: dict[str, tuple[str, dict[str, str]]] = {
        "overview": ("", here),
        **{name: (location(name)[0], here | location(name)[1]) for name in PAGES if name},
        "a link": ("fabric", {**here, "link": link}),
        "ranks on a link": ("fabric", {**here, "link": link, "show": "ranks"}),
        "errors of a link": ("fabric", {**here, "link": link, "show": "errors"}),
        "a switch": ("fabric", {**here, "switch": switch}),
        "history of a switch": ("fabric", {**here, "switch": switch, "show": "history"}),
        "errors on the map": ("fabric", {**here, "colour": "errors"}),
        "changes on the map": ("fabric", {**here, "colour": "changes"}),
        "counters": ("fabric", {**here, "colour": "difference"}),
        "a change": ("planner", {**here, "down": link}),
        "filtered jobs": ("jobs", {**here, "state": "RUNNING"}),
        "a job": ("jobs", {"job": f"{CLUSTER}/{next(iter(RUNNING))}"}),
        "two clusters": ("trends", {"compare": "clusters"}),
    }
    with connect() as registry:
        newest, other = (one.id for one in registry.placements.history(limit=2))
        scanned = registry.fabrics.clusters()[0].first_observed_at.isoformat()
        addresses |= {
            "the past": ("fabric", {**here, "at": scanned}),
            "a placement": ("jobs", {"placement": newest}),
            "a placement on the map": ("fabric", {"placement": newest}),
            "two placements": ("trends", {"compare": "placements", "a": newest, "b": other}),
        }
        return {name: two_viewers(registry, *address) for name, address in addresses.items()}


def two_viewers(registry: Registry, path: str, address: dict[str, str]) -> tuple[list[str], list[str]]:
    """The statements of a page that nobody looked at before, and those of a second viewer."""
    st.cache_resource.clear()
    counting = CountingDatabase(registry.database)
    first, second = (Session(counting, path, address).run() for _ in range(2))
    st.cache_resource.clear()
    return first, second


def test_pages_run_few_statements_all_with_tested_plans_and_none_for_a_second_viewer(asked: Asked) -> None:
    many = {name: len(found) for name, (found, _) in asked.items() if len(found) > MORE.get(name, MOST)}
    assert not many
    assert all(found for found, _ in asked.values())
    assert not {name: again for name, (_, again) in asked.items() if again}
    known = {text for _, text in statements()}
    assert not {name: set(found) - known for name, (found, _) in asked.items() if set(found) - known}


def test_no_page_scans_what_grows(  # plans depend on what the database holds
    asked: Asked, filled_neo4j: Database, planner: neo4j.Session
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


T = TypeVar("T")
"""A fabric whose drawing a page computes and, if it may, stores."""


class ReadOnly:
    """A database whose writes run in transactions that only read, in which Neo4j refuses them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.refused: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._database, name)

    def write(self, work: Callable[[Transaction], T]) -> T:
        try:
            return self._database.read(work)
        except DatabaseError as error:
            self.refused.append(str(error))
            raise

    def close(self) -> None:
        """Do nothing: the database belongs to the fixture."""


@pytest.fixture
def readonly(filled_neo4j: Database) -> ReadOnly:
    return ReadOnly(filled_neo4j)


@pytest.fixture
def limited(readonly: ReadOnly) -> Connect:
    return lambda: Registry(cast(Database, readonly))


def shown(limited: Connect, name: str, **address: str) -> AppTest:
    app = page(limited, name, **address)
    assert not app.error, messages(app)
    return app


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_shown(limited: Connect, name: str, readonly: ReadOnly) -> None:
    shown(limited, name, cluster="ndr")
    assert not readonly.refused


def test_details_are_shown(limited: Connect) -> None:
    with limited() as registry:
        fabric = traffic(registry, "ndr").fabric
    link, host = link_text(fabric, 0), fabric.names[fabric.hosts[0]]
    for name, address in (
        ("fabric", {"cluster": "tree", "colour": "errors"}),
        ("fabric", {"cluster": "ndr", "link": link}),
        ("fabric", {"cluster": "ndr", "host": host}),
        ("jobs", {"job": "ndr/4711"}),
        *(("jobs", {"job": "ndr/4711", "tab": tab}) for tab in ("links", "ranks", "runs")),
        ("planner", {"cluster": "ndr", "down": link}),
    ):
        shown(limited, name, **address)


@pytest.mark.parametrize("name", ["", "fabric", "planner"])
def test_a_drawing_that_cannot_be_stored_is_drawn(limited: Connect, name: str, readonly: ReadOnly) -> None:
    assert draw_fabric(RING, free).layout.form == FREE
    assert len(shown(limited, name, cluster="ring").get("bidi_component")) == 1
    (refused,) = readonly.refused
    assert "refused" in refused


def test_a_search_says_that_its_placement_is_not_saved(limited: Connect, readonly: ReadOnly) -> None:
    app = shown(limited, "jobs", job="ndr/4711")
    app.button(key="find").click().run()
    app.number_input(key="place seconds").set_value(1)
    app.button(key="place").click().run()
    searched(app)
    assert "Not saved, since the database refused" in messages(app)
    assert "place show" not in [button.key for button in app.button]
    assert readonly.refused
