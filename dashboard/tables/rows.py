"""Short lists of which every row is a link to another page: reached by mouse and keyboard alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import streamlit as st

from dashboard.widgets.messages import plain


class Row(NamedTuple):
    """One row of a list.

    Attributes
    ----------
    label : str
        Text of the link; shown as it is.
    values : tuple of str
        Of the other columns.
    address : mapping of str to str
        Parameters of the page that it leads to.
    """

    label: str
    values: tuple[str, ...]
    address: Mapping[str, str]


def linked_rows(page: st.Page, heads: Sequence[str], widths: Sequence[float], rows: Sequence[Row]) -> None:
    """A list of rows below their heads.

    Parameters
    ----------
    page : Page
        That the rows lead to.
    heads : sequence of str
        Titles of the columns, the first above the links.
    widths : sequence of float
        Of the columns.
    """
    with st.container(gap=None):
        for column, head in zip(st.columns(list(widths)), heads, strict=True):
            column.caption(plain(head))
        for row in rows:
            columns = st.columns(list(widths), vertical_alignment="center")
            columns[0].page_link(page, label=plain(row.label), query_params=dict(row.address))
            for column, value in zip(columns[1:], row.values, strict=True):
                column.text(value)
