"""Controls that filter a table; their state is stored in the page's address."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import streamlit as st

from dashboard.widgets.choices import choose
from dashboard.widgets.messages import plain


def any_of(
    label: str,
    parameter: str,
    options: Sequence[str],
    *,
    kind: str,
    show: Callable[[str], str] = str,
    resets: Sequence[str] = (),
) -> str | None:
    """One of several or all; None where all.

    Raises
    ------
    UnknownName
        The address names none of the options.
    """
    return choose(label, parameter, options, kind=kind, show=show, empty="all", resets=resets)


def written(
    label: str, parameter: str, *, hint: str = "", about: str = "", resets: Sequence[str] = ()
) -> str:
    """A text, without the blanks around it; empty where there is none."""
    key = f"write {parameter}"
    st.session_state[key] = st.query_params.get(parameter, "")
    st.text_input(
        label, key=key, placeholder=hint, help=about or None, on_change=_write, args=(parameter, key, *resets)
    )
    return str(st.session_state[key]).strip()


def at_least(
    label: str, parameter: str, *, about: str = "", step: float = 0.1, resets: Sequence[str] = ()
) -> float | None:
    """A number from 1 on; None where there is none."""
    key = f"number {parameter}"
    text = st.query_params.get(parameter)
    given = _number(text)
    if text is not None and given is None:
        st.warning(f"{plain(repr(text))} is no number from 1 on; all are shown.")
    st.session_state[key] = given
    st.number_input(
        label,
        min_value=1.0,
        value=None,
        step=step,
        format="%.4g",
        key=key,
        help=about or None,
        placeholder="any",
        on_change=_write,
        args=(parameter, key, *resets),
    )
    return given


def page_start(size: int, parameter: str) -> int:
    """First row of the page that the address names, pages of so many rows."""
    return (_page(parameter) - 1) * size


def pager(total: int, size: int, parameter: str, what: str) -> None:
    """Which rows are shown, of how many, and buttons to the page before and after.

    Parameters
    ----------
    total, size : int
        Rows in all, and of a page.
    """
    last = max(-(-total // size), 1)
    page = _page(parameter)
    first = (page - 1) * size
    shown = f"{first + 1:,} to {min(first + size, total):,} of {total:,} {what}" if first < total else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(shown or f"page {page:,} of {last:,}, {total:,} {what}")
        before, after = min(page - 1, last), page + 1
        st.button(
            "Previous", disabled=page == 1, on_click=_go, args=(parameter, before), key=f"{parameter} back"
        )
        st.button("Next", disabled=page >= last, on_click=_go, args=(parameter, after), key=f"{parameter} on")


def _number(text: str | None) -> float | None:
    """The number from 1 on that a text is; None where it is none."""
    try:
        value = math.nan if text is None else float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 1 else None


def _write(parameter: str, key: str, *resets: str) -> None:
    value = st.session_state[key]
    for other in resets:
        st.query_params.pop(other, None)
    if value is None or not str(value).strip():
        st.query_params.pop(parameter, None)
    else:
        st.query_params[parameter] = f"{value:g}" if isinstance(value, float) else str(value).strip()


def _page(parameter: str) -> int:
    """From 1 on."""
    return int(_number(st.query_params.get(parameter)) or 1)


def _go(parameter: str, page: int) -> None:
    if page <= 1:
        st.query_params.pop(parameter, None)
    else:
        st.query_params[parameter] = str(page)
