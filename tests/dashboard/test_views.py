"""Overview, history, changes and ingest: filled, empty and broken; and what a viewer may see."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from dashboard.app import PAGES as ENTRIES
from dashboard.state.viewer import Access
from registry.database.driver import Database
from registry.errors import DatabaseUnavailable, InputError
from registry.ingest_runs.runs import Attempt
from registry.registry import Registry
from tests.conftest import empty
from tests.dashboard.conftest import MARKUP, RESCANNED, SCANNED, Connect, Filled
from tests.dashboard.test_app import address, messages, page

OVERVIEW, HISTORY, CHANGES, INGEST = "", "history", "changes", "ingest"
PAGES = (OVERVIEW, HISTORY, CHANGES, INGEST)


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
    app = AppTest.from_function(limited, args=(connect, access), default_timeout=120)
    app.query_params.update(told)
    app._page_hash = calc_hash(name)
    app.run()
    assert not app.exception, app.exception
    return app


def titles(app: AppTest) -> list[str]:
    return [head.value for head in app.subheader]


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
        (CHANGES, {"cluster": "nrd"}, "ndr"),
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
    assert titles(app) == [
        "Busiest links (measured)",
        "Busiest links (estimated)",
        "Best candidates to move",
        "Changes in 24 hours",
        "Findings of checks",
        "Age of data sources",
    ]
    assert not app.error
    links = [str(link.proto.page) for link in app.get("page_link")]
    assert any("fabric" in link for link in links)
    assert any("ingest" in link for link in links)


def test_the_overview_shows_when_each_cluster_was_seen(filled: Filled) -> None:
    app = page(filled.connect, OVERVIEW)
    assert list(app.dataframe[0].value["cluster"]) == ["ndr", "tree"]
    app.selectbox(key="choose cluster").set_value("tree").run()
    assert address(app) == {"cluster": "tree"}
    assert any("63 hosts" in text.value for text in app.text)
    assert "almanac ingest --cluster tree COUNTERS" in [code.value for code in app.code]


def test_the_changes_page_lists_the_last_change(filled: Filled) -> None:
    app = page(filled.connect, CHANGES, cluster="tree")
    told = list(app.dataframe[0].value["what changed"])
    assert "host node0042 vanished" in told
    assert sum("vanished" in line for line in told) == 3
    assert any("1 host vanished, 2 cables vanished" in text.value for text in app.text)


def test_any_time_in_the_address_is_the_state_as_of_then(filled: Filled) -> None:
    told = {"from": "2026-01-01T23:00", "to": "2026-01-01T09:00"}
    app = page(filled.connect, CHANGES, cluster="tree", **told)
    assert any("1 host appeared, 2 cables appeared" in text.value for text in app.text)
    assert address(app)["to"] == SCANNED.isoformat()
    early = page(filled.connect, CHANGES, cluster="tree", **{"from": "2020-01-01"})
    assert "was first seen at" in messages(early)
    assert "is not a time such as" in messages(page(filled.connect, CHANGES, cluster="tree", to="soon"))


def test_a_cluster_that_never_changed_is_reported(filled: Filled) -> None:
    assert "never changed in any observation" in messages(page(filled.connect, CHANGES, cluster="ndr"))


def test_the_ingest_page_lists_runs_and_names_what_failed(filled: Filled) -> None:
    with filled.connect() as registry:
        reason = InputError("cut off", path="/home/eve/scan.txt")
        attempt = Attempt(
            started_at=RESCANNED, cluster="tree", formats=("ibnetdiscover",), files=("/home/eve/scan.txt",)
        )
        registry.failed(attempt, reason)
    app = page(filled.connect, INGEST, cluster="tree", outcome="failed")
    (run,) = app.dataframe[1].value.to_dict("records")
    assert run["error"] == "/home/eve/scan.txt: cut off"
    app = page(filled.connect, INGEST, cluster="tree", run=run["run"])
    assert "cut off" in messages(app)
    assert "/home/eve/scan.txt" in list(app.dataframe[2].value["value"])
    hidden = seen_by(Access(key=b"k" * 32), filled.connect, INGEST, cluster="tree", run=run["run"])
    assert "eve" not in whole(hidden)
    assert "There is no run" in messages(page(filled.connect, INGEST, cluster="ndr", run=run["run"]))


def test_the_history_lists_and_draws_each_application(filled: Filled) -> None:
    app = page(filled.connect, HISTORY)
    assert set(app.dataframe[0].value["placement"]) == {filled.first, filled.second, filled.alone}
    assert len(app.get("vega_lite_chart")) == 2
    app.selectbox(key="choose cluster").set_value("tree").run()
    assert list(app.dataframe[0].value["placement"]) == [filled.alone]
    assert address(app)["cluster"] == "tree"


def test_two_placements_are_compared(filled: Filled) -> None:
    app = page(filled.connect, HISTORY, compare="placements", a=filled.first, b=filled.second)
    facts = app.dataframe[0].value.set_index("fact")
    assert facts.loc["profile", "differs"] == ""
    assert facts.loc["ranks on hosts", "differs"] == "≠"
    links = app.dataframe[1].value
    assert (links.iloc[:, 3].diff().dropna() <= 1e-9).all()
    unknown = page(filled.connect, HISTORY, compare="placements", a=filled.first[:-1] + "x", b=filled.second)
    assert "There is no placement" in messages(unknown)


def test_two_clusters_are_compared(filled: Filled) -> None:
    app = page(filled.connect, HISTORY, compare="clusters")
    facts = app.dataframe[0].value.set_index("fact")
    assert (facts.loc["hosts", "A"], facts.loc["hosts", "B"]) == ("193", "63")
    assert set(app.dataframe[1].value["cluster"]) == {"ndr", "tree"}


def test_pages_show_nothing_to_one_who_is_not_named(filled: Filled) -> None:
    for name in PAGES:
        app = seen_by(Access(only="header:X-Forwarded-User"), filled.connect, name)
        assert "you are not logged in" in messages(app)
        assert not app.dataframe


ALL_PAGES = [OVERVIEW, *(entry.title.lower().replace(" ", "-") for entry in ENTRIES[1:])]


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
