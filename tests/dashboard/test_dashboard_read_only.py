"""Every page on a Neo4j that lets the dashboard read only: the server itself refuses each write."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.layouts.drawing import draw_fabric
from dashboard.layouts.free import free
from dashboard.layouts.model import FREE
from mapping.service.live import traffic
from mapping.traffic.device_names import link_text
from registry.database.driver import Database, Transaction
from registry.errors import DatabaseError
from registry.registry import Registry
from tests.dashboard.conftest import RING, Connect
from tests.dashboard.views.test_job import searched
from tests.support.apps import PAGES, messages, page

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
def connect(readonly: ReadOnly) -> Connect:
    return lambda: Registry(cast(Database, readonly))


def shown(connect: Connect, name: str, **address: str) -> AppTest:
    """The page, which shows no error."""
    app = page(connect, name, **address)
    assert not app.error, messages(app)
    return app


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_shown(connect: Connect, name: str, readonly: ReadOnly) -> None:
    shown(connect, name, cluster="ndr")
    assert not readonly.refused


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("fabric", {"cluster": "tree", "colour": "errors"}),
        ("fabric", {"cluster": "ndr", "link": ""}),
        ("fabric", {"cluster": "ndr", "host": ""}),
        ("jobs", {"job": "ndr/4711"}),
        ("jobs", {"job": "ndr/4711", "tab": "links"}),
        ("jobs", {"job": "ndr/4711", "tab": "ranks"}),
        ("jobs", {"job": "ndr/4711", "tab": "runs"}),
        ("planner", {"cluster": "ndr", "down": ""}),
    ],
)
def test_details_are_shown(connect: Connect, name: str, address: dict[str, str]) -> None:
    with connect() as registry:
        live = traffic(registry, "ndr")
        fabric = live.fabric
    given = {
        "link": link_text(fabric, 0),
        "down": link_text(fabric, 0),
        "host": fabric.names[fabric.hosts[0]],
    }
    shown(connect, name, **{key: value or given[key] for key, value in address.items()})


@pytest.mark.parametrize("name", ["", "fabric", "planner"])
def test_a_drawing_that_cannot_be_stored_is_drawn(connect: Connect, name: str, readonly: ReadOnly) -> None:
    assert draw_fabric(RING, free).layout.form == FREE
    app = shown(connect, name, cluster="ring")
    assert len(app.get("bidi_component")) == 1
    assert len(readonly.refused) == 1
    assert "refused" in readonly.refused[0]


def test_a_search_says_that_its_placement_is_not_saved(connect: Connect, readonly: ReadOnly) -> None:
    app = shown(connect, "jobs", job="ndr/4711")
    app.button(key="find").click().run()
    app.number_input(key="place seconds").set_value(1)
    app.button(key="place").click().run()
    searched(app)
    assert "Not saved, since the database refused" in messages(app)
    assert "place show" not in [button.key for button in app.button]
    assert readonly.refused
