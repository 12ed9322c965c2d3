"""Tables as CSV files: formulas, times and units."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from dashboard.widgets.tables import csv_text
from tests.support.apps import app_of


@given(st.lists(st.text(max_size=12).filter(lambda text: "\0" not in text and "\r" not in text), max_size=5))
def test_no_cell_of_a_file_begins_as_a_formula(names: list[str]) -> None:
    text = csv_text(pd.DataFrame({"name": names, "number": -1.5}))
    read = pd.read_csv(io.StringIO(text), keep_default_na=False, dtype={"name": str})
    assert not any(str(name).startswith(("=", "+", "-", "@", "\t")) for name in read["name"])
    assert (read["number"] == -1.5).all()
    assert [name.removeprefix("'") for name in read["name"]] == [name.removeprefix("'") for name in names]


def test_times_and_nothing_are_written_plainly() -> None:
    at = pd.to_datetime(pd.Series(["2026-01-02T03:04:05", None]))
    assert csv_text(pd.DataFrame({"at": at, "n": [1.0, np.nan]})) == "at,n\n2026-01-02T03:04:05Z,1.0\n,\n"


def test_a_file_names_base_units_behind_its_columns() -> None:
    table = pd.DataFrame({"load": [1.0], "job": ["7"]})
    assert csv_text(table, {"load": "s", "not there": "B"}) == "load (s),job\n1.0,7\n"
    assert list(table.columns) == ["load", "job"]


def selectable() -> None:
    import pandas as pd
    import streamlit as st

    from dashboard.widgets.tables import keep_selected

    names = st.session_state["names"]
    keep_selected("table", names)
    st.dataframe(pd.DataFrame({"name": names}), on_select="rerun", selection_mode="multi-row", key="table")


def test_rows_that_moved_stay_selected_and_one_that_is_gone_does_not() -> None:
    app = app_of(selectable)
    app.session_state["names"] = ["b", "c", "d"]
    app.session_state["table"] = {"selection": {"rows": [0, 2], "columns": [], "cells": []}}
    app.run()
    assert app.session_state["table"]["selection"]["rows"] == [0, 2]
    app.session_state["names"] = ["a", "b", "c"]
    app.run()
    assert not app.exception
    assert app.session_state["table"]["selection"]["rows"] == [1]
