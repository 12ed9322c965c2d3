from __future__ import annotations

import gc
from typing import cast

import streamlit as st

from bench.dashboard.statements import CountingDatabase
from dashboard.app import prepare
from dashboard.server import keep_for_good
from dashboard.state.viewer import EVERYTHING
from registry.database.driver import Database
from registry.errors import DatabaseUnavailable
from registry.registry import Registry
from tests.dashboard.conftest import Filled
from tests.support.apps import app_of, page, script


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


def test_bugs_are_not_hidden() -> None:
    def connect() -> Registry:
        raise ZeroDivisionError("a bug")

    app = app_of(script, connect, EVERYTHING).run()
    assert app.exception[0].message == "a bug"


def test_what_the_pages_keep_is_not_searched_for_garbage_again() -> None:
    """A search of all objects after each run of a page took 0.1 s."""
    gc.collect()  # of what other tests left
    before = len(gc.get_objects())
    try:
        keep_for_good()
        assert gc.get_freeze_count() > 0.9 * before
        assert len(gc.get_objects()) < 0.1 * before
    finally:
        gc.unfreeze()
