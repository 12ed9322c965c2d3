"""Tables on pages: selected rows, bars of shares, download buttons, CSV text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from registry.csv_text import guarded


def download(
    label: str, content: str | Callable[[], str], name: str, *, key: str, mime: str = "text/csv"
) -> None:
    """Draw a button that downloads a text as a file, without a rerun of the page.

    Parameters
    ----------
    content : str or callable
        The text, or a function that returns it when the button is pressed.
    name : str
        Name of the file.
    """
    st.download_button(
        label, content, file_name=name, mime=mime, on_click="ignore", icon=":material/download:", key=key
    )


def keep_selected(key: str, ids: Sequence[str]) -> None:
    """Keep the same things selected in a table whose rows moved since it was drawn last.

    Parameters
    ----------
    key : str
        Key of the table, which is drawn next.
    ids : sequence of str
        What each row shows.
    """
    former = st.session_state.get(f"{key} rows", ids)
    st.session_state[f"{key} rows"] = ids
    chosen = st.session_state[key]["selection"]["rows"] if key in st.session_state else []
    if chosen and former != ids:
        place = {identity: row for row, identity in enumerate(ids)}
        names = [former[row] for row in chosen if row < len(former)]
        rows = [place[name] for name in names if name in place]
        st.session_state[key] = {"selection": {"rows": rows, "columns": [], "cells": []}}


def opening_column(opened: Callable[[int], None], rows: int, *, key: str, width: int) -> Any:
    """Return the settings of a column of buttons: a click opens the row, moving over it by keys does not.

    Parameters
    ----------
    opened : callable
        Called with the number of the row.
    rows : int
        Number of rows of the table; it may have lost the clicked one since it was drawn.
    """

    def clicked() -> None:
        row = st.session_state[key]["row"]
        if row < rows:
            opened(row)

    return st.column_config.ButtonColumn(
        type="tertiary", alignment="left", width=width, on_click=clicked, key=key
    )


def picked_row(event: Any, rows: int) -> int | None:
    """Return the row that is selected in a table, or None (also if the table no longer has that row).

    Parameters
    ----------
    event
        Result of ``st.dataframe``.
    rows : int
        Number of rows of the table.
    """
    chosen = event["selection"]["rows"]
    return chosen[0] if chosen and chosen[0] < rows else None


def share_bar(title: str | None = None) -> Any:
    """Return the settings of a column whose shares (0 to 1) are drawn as bars."""
    return st.column_config.ProgressColumn(title, format="percent", min_value=0, max_value=1)


def compact_number() -> Any:
    """Return the settings of a column of numbers of any size, such as 705M."""
    return st.column_config.NumberColumn(format="compact")


def csv_text(table: pd.DataFrame, bases: Mapping[str, str] | None = None) -> str:
    """Return a table as CSV text.

    Names of jobs and users come from files: a text that a spreadsheet would read as a formula gets a
    leading apostrophe.

    Parameters
    ----------
    bases : mapping of str to str, optional
        Base unit (of `registry.units`) of some columns; it is appended to the column's name.
    """
    safe = table.rename(columns={name: f"{name} ({base})" for name, base in (bases or {}).items()})
    for name in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[name]):
            safe[name] = pd.Series([guarded(value) for value in safe[name]], index=safe.index)
    return safe.to_csv(index=False, lineterminator="\n", date_format="%Y-%m-%dT%H:%M:%SZ")
