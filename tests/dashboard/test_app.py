from __future__ import annotations

from typing import cast

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from bench.dashboard.statements import CountingDatabase
from dashboard.app import prepare
from registry.database.driver import Database
from registry.database.local.server import ServerAddress, stop
from registry.errors import DatabaseUnavailable
from registry.registry import Registry
from tests.conftest import empty
from tests.dashboard.conftest import Connect, Filled
from tests.support.apps import app_of

FABRIC, JOB, HISTORY = "fabric", "job", "history"
JOBS, INTERFERENCE = "jobs", "interference"


def script(connect: object) -> None:
    from typing import Any, cast

    from dashboard.app import run

    run(cast(Any, connect))


def page(connect: Connect, name: str, **address: str) -> AppTest:
    app = app_of(script, connect)
    app.query_params.update(address)
    app._page_hash = calc_hash(name)  # the public way is for pages that are files
    app.run()
    assert not app.exception, app.exception
    return app


def address(app: AppTest) -> dict[str, str]:
    given = app.query_params.items()
    return {name: value if isinstance(value, str) else value[0] for name, value in given}


def messages(app: AppTest) -> str:
    shown = [element.value for kind in (app.error, app.info, app.warning) for element in kind]
    return "\n".join(shown).replace("\\", "")


@pytest.fixture
def nothing(embedded_server: ServerAddress, embedded_database: Database) -> Connect:
    empty(embedded_database)
    server = embedded_server
    return lambda: Registry.open(server.uri, user=server.user, password=server.password, name=server.name)


def test_the_first_page_shows_what_was_read_before_a_browser_asked(filled: Filled) -> None:
    with filled.connect() as registry:
        counting = CountingDatabase(registry.database)

        def connect() -> Registry:
            return Registry(cast(Database, counting))

        st.cache_resource.clear()
        prepare(connect)
        read = len(counting.statements)
        page(connect, "")
        assert len(counting.statements) == read > 0
        st.cache_resource.clear()


def test_a_database_that_is_away_is_left_to_the_page_to_report() -> None:
    def connect() -> Registry:
        raise DatabaseUnavailable("bolt://nowhere", "no answer", "start it")

    st.cache_resource.clear()
    prepare(connect)


@pytest.mark.parametrize("name", [FABRIC, JOBS, JOB, INTERFERENCE, HISTORY])
def test_an_empty_registry_shows_what_to_run(nothing: Connect, name: str) -> None:
    app = page(nothing, name)
    assert "almanac demo" in [code.value for code in app.code]
    assert "The registry holds" in messages(app)


@pytest.mark.parametrize(
    ("name", "wrong", "closest"),
    [
        (FABRIC, {"cluster": "nrd"}, "ndr"),
        (FABRIC, {"cluster": "tree", "placement": "?"}, None),
        (JOBS, {"cluster": "nrd"}, "ndr"),
        (JOBS, {"user": "evee"}, "eve"),
        (JOBS, {"state": "PENDIN"}, "PENDING"),
        (INTERFERENCE, {"cluster": "nrd"}, "ndr"),
        (JOB, {"job": "4712"}, "4711"),
        (JOB, {"job": "ndr/4711", "placement": "?"}, None),
        (JOB, {"placement": "?"}, None),
        (HISTORY, {"cluster": "trees"}, "tree"),
    ],
)
def test_an_unknown_id_is_reported_and_the_closest_can_be_clicked(
    filled: Filled, name: str, wrong: dict[str, str], closest: str | None
) -> None:
    wrong = {key: filled.second[:-1] + "x" if value == "?" else value for key, value in wrong.items()}
    app = page(filled.connect, name, **wrong)
    assert "There is no" in messages(app)
    offered = {button.key: button for button in app.button}
    if closest is not None:
        offered[f"closest {closest}"].click().run()
    else:
        next(button for key, button in offered.items() if key and key.startswith("forget")).click().run()
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("name", [FABRIC, JOBS, JOB, INTERFERENCE, HISTORY])
def test_a_database_that_is_down_is_reported_and_found_again(filled: Filled, name: str) -> None:
    down = [True]

    def connect() -> Registry:
        if down[0]:
            raise DatabaseUnavailable("bolt://127.0.0.1:1", "connection refused", "start it")
        return filled.connect()

    app = page(connect, name)
    assert "The database does not answer" in messages(app)
    assert "almanac doctor" in [code.value for code in app.code]
    down[0] = False
    app.button(key="try_again").click().run()
    assert not app.exception
    assert not app.error


def test_a_server_that_stopped_is_started_again_by_itself(filled: Filled) -> None:
    app = page(filled.connect, HISTORY)
    stop(filled.home)
    app.run()
    assert not app.exception
    assert not app.error
    assert len(app.dataframe[-1].value) == 3


def test_bugs_are_not_hidden() -> None:
    def connect() -> Registry:
        raise ZeroDivisionError("a bug")

    app = app_of(script, connect).run()
    assert app.exception[0].message == "a bug"
