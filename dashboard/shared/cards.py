"""What pages are made of: cards, colours, messages, states, tables, dialogs.

Cards: a border around one number, one picture or one list, under a heading.

Colours that all figures share, and layered charts.

The colour ramps are safe for colour-blind readers. High load stands out: dark on a light page, bright on a
dark one.

Change parameters of the page's address, in which the pages store their state.

Messages on pages (errors, unknown names, nothing to show), and text from the database as plain text.

What is drawn outside of the part of a page that refreshes itself: dialogs, and the progress of a search.

Both are fragments of Streamlit. Inside another fragment, one can leave the window empty: if that fragment
runs twice before the server has sent what its first run drew, the second run drops what holds the inner
fragment, but not the inner fragment's contents, and the browser stops at them. So the page draws them.

States of things (fine, to look at, to act on, unknown), always with colour, icon and word.

Tables on pages: selected rows, bars of shares, download buttons, CSV text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple, NoReturn

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from registry.csv_text import guarded
from registry.errors import AlmanacError, DatabaseUnavailable, InvalidValue, SchemaVersionError, UnknownName

LIGHT, DARK = "light", "dark"


@alt.theme.register("almanac", enable=True)
def _theme() -> alt.theme.ThemeConfig:
    """Describe a chart as a whole to screen readers, not each of its marks, of which some have no text."""
    return {"config": {"mark": {"aria": False}}}


HEAT = {
    LIGHT: ("#d3d8e0", "#f9d48b", "#f3a04a", "#e0672f", "#b3262d", "#6a0a33"),
    DARK: ("#454b57", "#5a2a6e", "#93305f", "#cf4446", "#f38b21", "#fbe45b"),
}
INK = {LIGHT: "#3a414d", DARK: "#c3c9d3"}
SERIES_COLOURS = {
    LIGHT: ("#7a8290", "#b3b9c4", "#0b6e8f", "#111820"),
    DARK: ("#9aa3b2", "#5f6775", "#4cc3ea", "#f4f6f8"),
}
"""Colour of each of `dashboard.shared.names.SERIES`."""


def theme_of(name: str | None) -> str:
    """Return `LIGHT` or `DARK`, by the theme name of the browser."""
    return DARK if name == DARK else LIGHT


def layers(*charts: Any) -> alt.LayerChart:
    """Return one chart with the given layers, the last on top."""
    return alt.LayerChart(layer=list(charts))


def set_address(**parameters: str | None) -> None:
    """Set parameters of the page's address; None removes one."""
    for name, value in parameters.items():
        if value is None:
            st.query_params.pop(name, None)
        else:
            st.query_params[name] = value


_ADDRESS = re.compile(r"(://|www(?=\.)|@)", re.IGNORECASE)
"""Parts of web addresses after which an invisible character is put, so that they do not become links."""
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


CONVENTION = (
    "Estimates assume that every running job sends its profile once per iteration, all at the same pace: the "
    "time of a link is the bytes of all jobs over its capacity, in seconds per iteration."
)
"""What the combined load of running jobs means."""


def plain(text: str) -> str:
    """Return the text escaped for Markdown: names in the database may hold markup."""
    unlinked = _ADDRESS.sub("\\1\N{WORD JOINER}", " ".join(text.split()))
    return _PUNCTUATION.sub(r"\\\1", unlinked)


def reason_of(error: AlmanacError) -> str:
    """Return what an error says, escaped for Markdown, with fields of data types in plain words."""
    return plain(error.named() if isinstance(error, InvalidValue) else str(error))


def show_error(error: AlmanacError) -> None:
    """Show an expected error and what to do about it."""
    if isinstance(error, DatabaseUnavailable):
        st.error(f"**The database does not answer:** {plain(str(error))}", icon=":material/cloud_off:")
        st.markdown("Check it with")
        st.code("almanac doctor", language=None)
        st.button("Try again", type="primary", key="try_again")
    elif isinstance(error, SchemaVersionError):
        st.error(f"**The database was written by another version.** {plain(str(error))}")
    else:
        st.error(reason_of(error))


def show_unknown(error: UnknownName, parameter: str) -> None:
    """Show that a name in the address is unknown, with the closest known names as buttons.

    Args:
        parameter: Name of the parameter of the address that holds the unknown name.
    """
    reason = f"there is no {error.kind} {error.name!r}" if error.close else error.reason
    st.error(plain(reason[0].upper() + reason[1:]), icon=":material/search_off:")
    if error.close:
        st.markdown("The closest known names:")
    with st.container(horizontal=True):
        for value in error.close:
            st.button(plain(value), on_click=set_address, kwargs={parameter: value}, key=f"closest {value}")
        default, key = {parameter: None}, f"forget {parameter}"
        st.button("Show the default", on_click=set_address, kwargs=default, key=key)


def show_nobody(login: str | None = None) -> None:
    """Show that pages are limited to the user's own jobs and that no user name is known.

    Args:
        login: User name of the login; empty if the login contains none, None if nobody is logged in.
    """
    if login is not None:
        missing = "**These pages show each user's own jobs, but your login has no user name.**"
        st.error(f"{missing} Ask the administrator of this dashboard.", icon=":material/lock:")
        return
    st.error("**These pages show each user's own jobs, and you are not logged in.**", icon=":material/lock:")
    if "is_logged_in" in st.user:
        st.button("Log in", type="primary", on_click=st.login, key="log_in")
    else:
        st.markdown("Open them through the proxy that logs you in, or ask the administrator.")


def show_login(name: str) -> None:
    """Show at the end of a page who is logged in, and a button to log out."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Logged in as {plain(name)}." if name else "Logged in.")
        st.button("Log out", on_click=st.logout, type="tertiary", icon=":material/logout:", key="log_out")


def show_empty(what: str, *commands: str) -> None:
    """Show that something is not in the registry yet, and the commands that add it."""
    st.info(what, icon=":material/inventory_2:")
    for command in commands:
        st.code(command, language=None)


def show_no_fabric() -> None:
    """Show that the registry holds no fabric, and the commands that add one."""
    show_empty(
        "The registry holds no fabric yet. Ingest a scan, or load the demonstration:",
        "almanac ingest SCAN --cluster NAME",
        "almanac demo",
    )


_PARTS, _PAGE = "parts outside", "page of the parts outside"


class _Part(NamedTuple):
    """A part, and what the address named when it was added."""

    about: str
    draw: Callable[[], None]


def begin(page: str) -> None:
    """Begin to draw a page: the parts of another page are removed."""
    if st.session_state.get(_PAGE) != page:
        st.session_state[_PAGE], st.session_state[_PARTS] = page, {}


def add(name: str, draw: Callable[[], None]) -> NoReturn:
    """Add a part, or replace that of the same name, and draw the whole page again.

    The part is drawn until it is removed, or the address names another page, job or placement.
    """
    _parts()[name] = _Part(_about(), draw)
    st.rerun()


def has(name: str) -> bool:
    """Return True if the page has this part."""
    part = _parts().get(name)
    return part is not None and part.about == _about()


def remove(name: str) -> None:
    """Remove a part, if the page has it, from when it is drawn next."""
    _parts().pop(name, None)


def draw() -> None:
    """Draw all parts."""
    for name, part in list(_parts().items()):
        if has(name):
            part.draw()
        else:
            remove(name)


def _parts() -> dict[str, _Part]:
    found: dict[str, _Part] = st.session_state.setdefault(_PARTS, {})
    return found


def _about() -> str:
    """Return the job that the address names, or the placement without a job; empty if it names neither."""
    job = st.query_params.get("job", "")
    return job if "/" in job else st.query_params.get("placement", "")


Colour = Literal["green", "orange", "red", "grey"]


class State(Enum):
    """How urgent something is."""

    OK = "OK"
    LOOK = "look"
    ACT = "act"
    UNKNOWN = "unknown"

    @property
    def colour(self) -> Colour:
        """Colour of badges and numbers."""
        return _LOOKS[self][0]

    @property
    def icon(self) -> str:
        """Icon, as Streamlit names it."""
        return f":material/{_LOOKS[self][1]}:"

    @property
    def word(self) -> str:
        """The state as a word, for a badge without other text."""
        return self.value


_LOOKS: dict[State, tuple[Colour, str]] = {
    State.OK: ("green", "check_circle"),
    State.LOOK: ("orange", "warning"),
    State.ACT: ("red", "error"),
    State.UNKNOWN: ("grey", "help"),
}


def badge(state: State, text: str = "", *, help: str = "") -> None:
    """Draw a state as a badge.

    Args:
        text: Text without markup (default: the state's word).
        help: Explanation, shown on hover.
    """
    st.badge(plain(text) or state.word, icon=state.icon, color=state.colour, help=help or None)


def badge_text(state: State, text: str = "") -> str:
    """Return a state as Markdown, for use inside other text."""
    return f":{state.colour}-badge[{state.icon} {plain(text) or state.word}]"


def card(title: str, *, help: str = "", height: int | None = None) -> DeltaGenerator:
    """Draw an empty card with a heading and return it, to draw inside.

    Args:
        title: Heading, without markup.
        help: Explanation, shown behind a question mark.
        height: Height in pixels; longer content scrolls (default: as high as the content).
    """
    drawn = st.container(border=True, height="content" if height is None else height, gap="small")
    drawn.header(plain(title), help=help or None, anchor=False)
    return drawn


def number(
    label: str,
    value: str,
    *,
    help: str = "",
    note: str = "",
    chart: alt.Chart | None = None,
    state: State | None = None,
) -> DeltaGenerator:
    """Draw a card with one number and return it.

    Args:
        label, value: Title and number with its unit, without markup.
        help: Explanation, shown behind a question mark.
        note: Small text below the number; the text of the badge if a state is given.
        chart: Values over time, drawn beside the number.
        state: Drawn as a badge.
    """
    drawn = st.container(border=True, height="stretch", gap="xsmall")
    with drawn, st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.metric(plain(label), plain(value), help=help or None, width="content")
        if chart is not None:
            st.altair_chart(chart, width="content")
    with drawn:
        if state is not None:
            badge(state, note)
        elif note:
            st.caption(plain(note))
    return drawn


def unknown(label: str, command: str, *, help: str = "") -> DeltaGenerator:
    """Draw a grey card for something that was never read, with the command that reads it.

    Args:
        label: What is not known, without markup.
    """
    drawn = st.container(border=True, height="stretch", gap="xsmall")
    with drawn:
        st.caption(plain(label), help=help or None)
        badge(State.UNKNOWN, "never read")
        st.code(command, language=None, wrap_lines=True)
    return drawn


def download(
    label: str, content: str | Callable[[], str], name: str, *, key: str, mime: str = "text/csv"
) -> None:
    """Draw a button that downloads a text as a file, without a rerun of the page.

    Args:
        content: The text, or a function that returns it when the button is pressed.
        name: Name of the file.
    """
    st.download_button(
        label, content, file_name=name, mime=mime, on_click="ignore", icon=":material/download:", key=key
    )


def keep_selected(key: str, ids: Sequence[str]) -> None:
    """Keep the same things selected in a table whose rows moved since it was drawn last.

    Args:
        key: Key of the table, which is drawn next.
        ids: What each row shows.
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

    Args:
        opened: Called with the number of the row.
        rows: Number of rows of the table; it may have lost the clicked one since it was drawn.
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

    Args:
        event: Result of ``st.dataframe``.
        rows: Number of rows of the table.
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

    Args:
        bases: Base unit (of `registry.units`) of some columns; it is appended to the column's name.
    """
    safe = table.rename(columns={name: f"{name} ({base})" for name, base in (bases or {}).items()})
    for name in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[name]):
            safe[name] = pd.Series([guarded(value) for value in safe[name]], index=safe.index)
    return safe.to_csv(index=False, lineterminator="\n", date_format="%Y-%m-%dT%H:%M:%SZ")
