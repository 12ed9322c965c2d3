"""Rules of all pages: empty, broken, unknown names, markup, and what a viewer may see; and the overview."""

from __future__ import annotations

import re
from typing import cast

import numpy as np
import pytest

from almanac.demo.fill import CLUSTER
from dashboard.state.viewer import Access
from mapping.checks.catalog import check
from mapping.service.live import traffic
from mapping.service.placing import subject_of
from registry.database.driver import Database
from registry.errors import DatabaseUnavailable
from registry.registry import Registry
from tests.dashboard.conftest import MARKUP, Connect, Filled
from tests.support.apps import (
    CIRCUITS,
    DATA,
    FABRIC,
    HISTORY,
    INTERFERENCE,
    JOB,
    JOBS,
    OVERVIEW,
    PAGES,
    address,
    messages,
    numbers,
    page,
    seen_by,
    titles,
    whole,
)


@pytest.mark.parametrize("name", [*PAGES, JOB])
def test_an_empty_registry_shows_what_to_run(nothing: Connect, name: str) -> None:
    app = page(nothing, name)
    commands = [code.value for code in app.code]
    assert "almanac demo" in commands
    assert "The registry holds" in messages(app)
    if name == OVERVIEW:
        assert titles(app) == ["1\\. Scan", "2\\. Jobs", "3\\. Profiles", "Or an example"]
        assert [code.split()[:2] for code in commands] == [
            ["almanac", "ingest"],
            ["scontrol", "show"],
            ["almanac", "job"],
            ["almanac", "demo"],
        ]
    if name == CIRCUITS:
        assert any(command.startswith("almanac cluster optical NAME") for command in commands)


class Lost:
    """A database whose connection is lost."""

    uri = "bolt://127.0.0.1:1"

    def __getattr__(self, name: str) -> object:
        raise DatabaseUnavailable(self.uri, "connection reset", "start it")

    def close(self) -> None:
        """Do nothing: there is no connection."""


@pytest.mark.parametrize(("name", "lost"), [(OVERVIEW, False), (JOB, True)])
def test_a_database_that_is_down_is_reported_and_found_again(filled: Filled, name: str, lost: bool) -> None:
    down = [True]

    def connect() -> Registry:
        if not down[0]:
            return filled.connect()
        return Registry(cast(Database, Lost())) if lost else Registry.open(Lost.uri)

    app = page(connect, name)
    assert "The database does not answer" in messages(app)
    assert "almanac doctor" in [code.value for code in app.code]
    down[0] = False
    app.button(key="try_again").click().run()
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize(
    ("name", "wrong", "closest"),
    [
        (OVERVIEW, {"cluster": "nrd"}, "ndr"),
        (DATA, {"cluster": "nrd"}, "ndr"),
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
        (HISTORY, {"compare": "clusters", "cluster b": "tre"}, "tree"),
    ],
)
def test_an_unknown_name_is_reported_and_the_closest_can_be_clicked(
    filled: Filled, name: str, wrong: dict[str, str], closest: str | None
) -> None:
    wrong = {key: filled.second[:-1] + "x" if value == "?" else value for key, value in wrong.items()}
    app = page(filled.connect, name, **wrong)
    assert "There is no" in messages(app)
    start = "forget" if closest is None else f"closest {closest}"
    next(button for button in app.button if (button.key or "").startswith(start)).click().run()
    assert not app.exception
    assert not app.error
    assert closest is None or name == JOB or closest in address(app).values()


def test_the_overview_shows_all_that_it_is_for(connect: Connect) -> None:
    app = page(connect, OVERVIEW)
    assert titles(app) == ["Load now", "Busiest links", "Jobs to act on", "Last 24 hours"]
    shown = numbers(app)
    assert list(shown) == [
        *("Fabric health", "Peak link", "Running jobs", "Best possible gain", "Age of data"),
    ]
    with connect() as registry:
        live, rates = traffic(registry, CLUSTER), registry.counters.rates(CLUSTER)
        gains = [one.advice.gain for one in live.running.jobs if one.advice is not None]
        found = check(subject_of(registry, CLUSTER))
    worst = max(one.severity for one in found)
    assert shown["Fabric health"] == str(sum(one.severity == worst for one in found))
    assert shown["Peak link"] == f"{100 * np.nanmax(rates.share):.3g} %"
    assert shown["Running jobs"] == str(len(live.running.jobs))
    assert shown["Best possible gain"] == f"{max(gains):.3g} ×"
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


def test_pages_show_nothing_to_one_who_is_not_named(filled: Filled) -> None:
    for name in PAGES:
        app = seen_by(Access(only="header:X-Forwarded-User"), filled.connect, name)
        assert "you are not logged in" in messages(app)
        assert "Open them through the proxy that logs you in" in whole(app)
        assert not app.dataframe


@pytest.mark.parametrize("name", PAGES)
def test_no_page_shows_a_hidden_user(connect: Connect, name: str) -> None:
    with connect() as registry:
        users = {stored.job.user for stored in registry.jobs.list() if stored.job.user}
    assert users
    shown = whole(seen_by(Access(key=b"k" * 32), connect, name))
    assert not [user for user in users if re.search(rf"(?<![\w-]){re.escape(user)}(?![\w-])", shown)]


@pytest.mark.parametrize("name", PAGES)
def test_one_users_view_names_no_job_of_others(filled: Filled, name: str) -> None:
    app = seen_by(Access(only="eve"), filled.connect, name)
    assert not re.search(r"(?<!\d)4711(?!\d)", whole(app))
    assert not app.error


def test_another_users_job_or_placement_in_the_address_is_unknown_without_a_hint(filled: Filled) -> None:
    own, alone = {"placement": filled.second}, {"placement": filled.alone}
    for told in ({"job": "ndr/4711"}, {"job": "4711"}, {"job": "ndr/4712"}, own, alone):
        app = seen_by(Access(only="eve"), filled.connect, JOB, **told)
        assert "There is no" in messages(app)
        assert not [button for button in app.button if (button.key or "").startswith("closest")]
        assert not app.dataframe
        assert not app.metric


def test_markup_in_names_does_nothing(filled: Filled) -> None:
    for name in PAGES:
        app = page(filled.connect, name, cluster="tree")
        shown = [element.value for kind in (app.markdown, app.caption) for element in kind]
        assert not any(MARKUP in text for text in shown)
