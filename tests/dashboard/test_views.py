"""Overview, history, changes and ingest: filled, empty and broken; and what a viewer may see."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from almanac.demo.fill import CLUSTER
from dashboard.app import MOVED
from dashboard.app import PAGES as ENTRIES
from dashboard.state.viewer import Access
from mapping.checks.catalog import check
from mapping.service.live import traffic
from mapping.service.placing import subject_of
from registry.database.driver import Database
from registry.errors import DatabaseUnavailable
from registry.registry import Registry
from tests.conftest import empty
from tests.dashboard.conftest import MARKUP, Connect, Filled
from tests.dashboard.test_app import address, messages, page
from tests.support.apps import app_of

OVERVIEW, HISTORY, INGEST = "", "history", "ingest"
PAGES = (OVERVIEW, HISTORY, INGEST)


@pytest.fixture
def demo_registry(demonstration: Path) -> Connect:
    return lambda: Registry.open(home=demonstration, idle_seconds=300)


@pytest.fixture
def nothing(embedded_server: Any, embedded_database: Database) -> Connect:
    empty(embedded_database)
    server = embedded_server
    return lambda: Registry.open(server.uri, user=server.user, password=server.password, name=server.name)


def limited(connect: object, access: object) -> None:
    import typing  # the page runs this function alone, without the imports of the module

    from dashboard.app import run

    run(typing.cast(typing.Any, connect), lambda: typing.cast(typing.Any, access))


def seen_by(access: Access, connect: Connect, name: str, **told: str) -> AppTest:
    app = app_of(limited, connect, access)
    app.query_params.update(told)
    app._page_hash = calc_hash(name)
    app.run()
    assert not app.exception, app.exception
    return app


def titles(app: AppTest) -> list[str]:
    return [head.value for head in app.header]


def whole(app: AppTest) -> str:
    """All text and all cells of a page."""
    texts = [element.value for kind in ("text", "caption", "markdown") for element in getattr(app, kind)]
    cells = [table.value.to_csv() for table in app.dataframe]
    labels = [str(link.proto.label) for link in app.get("page_link")]
    return "\n".join([*texts, *cells, *labels, messages(app)]).replace("\\", "")


@pytest.mark.parametrize("name", PAGES)
def test_an_empty_registry_shows_what_to_run(nothing: Connect, name: str) -> None:
    app = page(nothing, name)
    assert "almanac demo" in [code.value for code in app.code]
    assert "The registry holds no" in messages(app)


@pytest.mark.parametrize("name", PAGES)
def test_a_database_that_is_down_is_reported_and_found_again(filled: Filled, name: str) -> None:
    down = [True]

    def connect() -> Registry:
        if down[0]:
            raise DatabaseUnavailable("bolt://127.0.0.1:1", "connection refused", "start it")
        return filled.connect()

    app = page(connect, name)
    assert "The database does not answer" in messages(app)
    down[0] = False
    app.button(key="try_again").click().run()
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize(
    ("name", "wrong", "closest"),
    [
        (OVERVIEW, {"cluster": "nrd"}, "ndr"),
        (INGEST, {"cluster": "nrd"}, "ndr"),
        (HISTORY, {"cluster": "trees"}, "tree"),
        (HISTORY, {"compare": "clusters", "cluster b": "tre"}, "tree"),
    ],
)
def test_an_unknown_name_is_reported_and_the_closest_can_be_clicked(
    filled: Filled, name: str, wrong: dict[str, str], closest: str
) -> None:
    app = page(filled.connect, name, **wrong)
    assert "There is no" in messages(app)
    next(button for button in app.button if button.key == f"closest {closest}").click().run()
    assert not app.exception
    assert not app.error
    assert closest in address(app).values()


def test_the_overview_shows_all_that_it_is_for(demo_registry: Connect) -> None:
    app = page(demo_registry, OVERVIEW)
    assert titles(app) == ["Load now", "Busiest links", "Jobs to act on", "Last 24 hours"]
    numbers = {one.label.replace("\\", ""): one.value.replace("\\", "") for one in app.metric}
    assert list(numbers) == [
        *("Fabric health", "Peak link", "Running jobs", "Best possible gain", "Age of data"),
    ]
    with demo_registry() as registry:
        live, rates = traffic(registry, CLUSTER), registry.counters.rates(CLUSTER)
        gains = [one.advice.gain for one in live.running.jobs if one.advice is not None]
        found = check(subject_of(registry, CLUSTER))
    worst = max(one.severity for one in found)
    assert numbers["Fabric health"] == str(sum(one.severity == worst for one in found))
    assert numbers["Peak link"] == f"{100 * np.nanmax(rates.share):.3g} %"
    assert numbers["Running jobs"] == str(len(live.running.jobs))
    assert numbers["Best possible gain"] == f"{max(gains):.3g} ×"
    assert not app.error
    links = {str(link.proto.page): str(link.proto.query_string) for link in app.get("page_link")}
    assert {"fabric", "jobs", "trends"} <= {link.rpartition("/")[2] for link in links}
    assert not app.code


def test_what_was_never_read_is_a_card_with_its_command(filled: Filled) -> None:
    app = page(filled.connect, OVERVIEW)
    app.selectbox(key="choose cluster").set_value("tree").run()
    assert address(app) == {"cluster": "tree"}
    assert [code.value for code in app.code] == [
        "almanac ingest --cluster tree COUNTERS",
        "almanac ingest --cluster tree JOBS",
    ]
    assert "never read" in whole(app)


def test_an_empty_registry_shows_three_steps_and_the_demonstration(nothing: Connect) -> None:
    app = page(nothing, OVERVIEW)
    assert titles(app) == ["1\\. Scan", "2\\. Jobs", "3\\. Profiles", "Or an example"]
    assert [code.value.split()[:2] for code in app.code] == [
        ["almanac", "ingest"],
        ["scontrol", "show"],
        ["almanac", "job"],
        ["almanac", "demo"],
    ]


def test_pages_show_nothing_to_one_who_is_not_named(filled: Filled) -> None:
    for name in PAGES:
        app = seen_by(Access(only="header:X-Forwarded-User"), filled.connect, name)
        assert "you are not logged in" in messages(app)
        assert not app.dataframe


ALL_PAGES = [OVERVIEW, *(entry.name for entry in ENTRIES[1:]), *MOVED]


@pytest.mark.parametrize("name", ALL_PAGES)
def test_no_page_shows_a_hidden_user(demo_registry: Connect, name: str) -> None:
    with demo_registry() as registry:
        users = {stored.job.user for stored in registry.jobs.list() if stored.job.user}
    assert users
    shown = whole(seen_by(Access(key=b"k" * 32), demo_registry, name))
    assert not [user for user in users if re.search(rf"(?<![\w-]){re.escape(user)}(?![\w-])", shown)]


@pytest.mark.parametrize("name", ALL_PAGES)
def test_one_users_view_names_no_job_of_others(filled: Filled, name: str) -> None:
    app = seen_by(Access(only="eve"), filled.connect, name)
    assert not re.search(r"(?<!\d)4711(?!\d)", whole(app))
    assert not app.error


def test_another_users_job_or_placement_in_the_address_is_unknown(filled: Filled) -> None:
    for told in ({"job": "ndr/4711"}, {"job": "4711"}, {"placement": filled.second}):
        app = seen_by(Access(only="eve"), filled.connect, "job", **told)
        assert "There is no" in messages(app)
        assert not app.dataframe


def test_markup_in_names_does_nothing(filled: Filled) -> None:
    for name in PAGES:
        app = page(filled.connect, name)
        assert not any(MARKUP in element.value for element in app.markdown)
