"""Controls whose state is stored in the page's address: a copied link shows the same page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import streamlit as st

from dashboard.shared.cards import plain, set_address
from registry.errors import UnknownName
from registry.units import MOMENTS, moment_of

STOPS = 100
"""Largest number of changes that a slider of time stops at; the newest ones."""
EVEN_STOPS = 100
"""Largest number of its other stops, which are at equal distances."""
STEPS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720, 1440, 7 * 1440))
"""Possible distances of these."""
NOW = "now"


def set_value(key: str, value: object) -> None:
    """Give a widget the value of the address; a widget that has it keeps what the user is typing."""
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value


def choose(
    label: str,
    parameter: str,
    options: Sequence[str],
    *,
    show: Callable[[str], str] = str,
    kind: str = "",
    empty: str | None = None,
    default: str | None = None,
    resets: Sequence[str] = (),
) -> str | None:
    """Draw a select box and return the chosen option.

    Args:
        parameter: Name of the parameter of the address that holds the choice.
        show: Returns the displayed text of an option.
        kind: What the options are, for the error message (default: the label in lower case).
        empty: Text shown while nothing is chosen; if given, choosing nothing is possible and is the default.
        default: Option that is chosen if the address names none (default: the first option).
        resets: Parameters that are removed from the address when the choice changes.

    Raises:
        UnknownName: The address names none of the options.
    """
    wanted = st.query_params.get(parameter)
    if wanted is not None and wanted not in options:
        raise UnknownName(kind or label.lower(), wanted, options)
    key = f"choose {parameter}"
    if default is None and empty is None and options:
        default = options[0]
    set_value(key, default if wanted is None else wanted)
    st.selectbox(
        label,
        options,
        index=0 if empty is None else None,
        format_func=show,
        key=key,
        placeholder=empty or "",
        on_change=_to_address,
        args=(parameter, key, *resets),
    )
    chosen: str | None = st.session_state[key]
    return chosen


def any_of(parameter: str, options: Sequence[str], *, resets: Sequence[str] = ()) -> str | None:
    """Draw a select box with the options and "all"; return the option, or None for all.

    Raises:
        UnknownName: The address names none of the options.
    """
    return choose(parameter.capitalize(), parameter, options, empty="all", resets=resets)


def toggle(
    label: str, parameter: str, options: Mapping[str, str], default: str, *, hide_label: bool = False
) -> str:
    """Draw a row of buttons and return the pressed one; options map a value of the address to its text.

    Args:
        hide_label: True to show the label to screen readers only.
    """
    wanted = st.query_params.get(parameter, default)
    if wanted not in options:
        st.warning(f"{label} can be {', '.join(options)}, not {plain(repr(wanted))}.")
    key = f"choose {parameter}"
    set_value(key, wanted if wanted in options else default)
    st.segmented_control(
        label,
        list(options),
        format_func=options.__getitem__,
        key=key,
        required=True,
        on_change=_to_address,
        args=(parameter, key),
        label_visibility="collapsed" if hide_label else "visible",
    )
    return str(st.session_state[key] or default)


@contextmanager
def tabbed(parameter: str, options: Mapping[str, str]) -> Iterator[str]:
    """Draw tabs and open the one that the address names; options map a value of the address to its label.

    Elements of the ``with`` block are drawn in the tab; only the open tab is drawn.
    """
    names = list(options)
    wanted = st.query_params.get(parameter, names[0])
    if wanted not in options:
        st.warning(f"The tabs of this page are {', '.join(options)}; there is no {plain(repr(wanted))}.")
        wanted = names[0]
    key = f"tabs {' '.join(names)}"
    set_value(key, options[wanted])

    def opened() -> None:
        name = names[list(options.values()).index(st.session_state[key])]
        set_address(**{parameter: None if name == names[0] else name})

    drawn = st.tabs(list(options.values()), key=key, on_change=opened)
    with drawn[names.index(wanted)]:
        yield wanted


def named(parameter: str, options: Sequence[str]) -> str | None:
    """Return the option that the address names, or None if it names none.

    Raises:
        UnknownName: The address names something else.
    """
    wanted = st.query_params.get(parameter)
    if wanted is not None and wanted not in options:
        raise UnknownName(parameter, wanted, options)
    return wanted


def chips(
    label: str,
    parameter: str,
    options: Sequence[str],
    *,
    show: Callable[[str], str] = str,
    resets: Sequence[str] = (),
) -> str | None:
    """Draw the options as chips and return the pressed one; None if none is.

    Raises:
        UnknownName: The address names none of the options.
    """
    key = f"choose {parameter}"
    wanted = named(parameter, options)
    set_value(key, wanted)
    st.pills(label, options, format_func=show, key=key, on_change=_to_address, args=(parameter, key, *resets))
    return wanted


def text_field(
    label: str, parameter: str, *, hint: str = "", about: str = "", resets: Sequence[str] = ()
) -> str:
    """Draw a text field and return its text without surrounding blanks."""
    key = f"write {parameter}"
    set_value(key, st.query_params.get(parameter, ""))
    st.text_input(
        label,
        key=key,
        placeholder=hint,
        help=about or None,
        on_change=lambda: set_address(
            **dict.fromkeys(resets), **{parameter: st.session_state[key].strip() or None}
        ),
    )
    return str(st.session_state[key]).strip()


def at_least(
    label: str, parameter: str, *, about: str = "", step: float = 0.1, resets: Sequence[str] = ()
) -> float | None:
    """Draw a field for a number of 1 or more and return it, or None if it is empty."""
    key = f"number {parameter}"
    text = st.query_params.get(parameter)
    given = _number(text)
    if text is not None and given is None:
        st.warning(f"{plain(repr(text))} is not a number of 1 or more: all rows are shown.")
    set_value(key, given)
    st.number_input(
        label,
        min_value=1.0,
        value=None,
        step=step,
        format="%.4g",
        key=key,
        help=about or None,
        placeholder="any",
        on_change=_to_address,
        args=(parameter, key, *resets),
    )
    return given


def moment(
    label: str, parameter: str, first: datetime, last: datetime, *, resets: Sequence[str] = ()
) -> datetime | None:
    """Draw a field for a time from first to last, and return that time in UTC; None means now.

    The widget chooses whole minutes and means the end of the minute; the address may hold any time.
    """
    key = f"choose {parameter}"
    low, high = _minutes(first), _minutes(last)
    given = parsed_moment(parameter, instead="the latest")
    set_value(key, None if given is None else min(max(_minutes(given), low), high))
    st.datetime_input(
        label,
        value=None,
        min_value=low,
        max_value=high,
        key=key,
        on_change=_to_address,
        args=(parameter, key, *resets),
    )
    return given


def timeline(
    label: str,
    parameter: str,
    first: datetime,
    changes: Mapping[datetime, str],
    marks: Callable[[Sequence[int], Sequence[str]], Any],
) -> None:
    """Draw a slider from the first time to "now", with a mark above it at each change.

    Its stops are times at equal distances and the times of the changes. It shows the last stop at or before
    the time in the address; that time stays as it is.

    Args:
        changes: What changed at a time; the newest `STOPS` of them are offered.
        marks: Returns the chart of the marks from the numbers of these stops and the texts of all stops.
    """
    recent = dict(sorted(changes.items())[-STOPS:])
    stops = {moment.isoformat(): "" for moment in _even(first, datetime.now(UTC))}
    stops |= {moment.isoformat(): f" · {what}" for moment, what in recent.items()}
    ordered = sorted(stops, key=datetime.fromisoformat)
    texts = {key: f"{datetime.fromisoformat(key):%d %b %H:%M}{stops[key]}" for key in ordered} | {NOW: NOW}
    given = _parsed(st.query_params.get(parameter))
    passed = [key for key in ordered if given is None or datetime.fromisoformat(key) <= given]
    key = f"time {parameter}"
    set_value(key, NOW if given is None else passed[-1] if passed else next(iter(texts)))
    with st.container(gap=None):
        st.caption(f"{label} · ▼ wiring or tables changed")
        places = [place for place, one in enumerate(texts) if stops.get(one)]
        st.altair_chart(marks(places, list(texts.values())), key=f"{key} marks", height=16)
        st.select_slider(
            label,
            list(texts),
            format_func=texts.__getitem__,
            key=key,
            label_visibility="collapsed",
            on_change=lambda: set_address(
                **{parameter: None if st.session_state[key] == NOW else st.session_state[key]}
            ),
        )


def _even(first: datetime, last: datetime) -> list[datetime]:
    """Return the first time, and at most `EVEN_STOPS` later ones at round times up to the last."""
    step = next((step for step in STEPS if (last - first) / step <= EVEN_STOPS), (last - first) / EVEN_STOPS)
    number = math.ceil(first.timestamp() / step.total_seconds())
    found = [first]
    while (moment := datetime.fromtimestamp(number * step.total_seconds(), UTC)) < last:
        found.append(moment)
        number += 1
    return found


def parsed_moment(parameter: str, instead: str = "the default") -> datetime | None:
    """Return the time in the address, in UTC; warn about a text that is not a time.

    Args:
        instead: What the page shows if the text is not a time, for the warning.
    """
    text = st.query_params.get(parameter)
    given = _parsed(text)
    if text is not None and given is None:
        st.warning(f"{plain(repr(text))} is not a time such as {MOMENTS}: {instead} is shown.")
    return given


def page_start(size: int, parameter: str) -> int:
    """Return the first row of the page that the address names, with `size` rows a page."""
    return (_page(parameter) - 1) * size


def pager(total: int, size: int, parameter: str, what: str) -> None:
    """Draw which rows are shown of how many, and buttons to the previous and next page.

    Args:
        total, size: Rows in all, and rows a page.
    """
    last = max(-(-total // size), 1)
    page = _page(parameter)
    first = (page - 1) * size
    shown = f"{first + 1:,} to {min(first + size, total):,} of {total:,} {what}" if first < total else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(shown or f"page {page:,} of {last:,}, {total:,} {what}")
        for text, key, other, disabled in (
            ("Previous", "back", min(page - 1, last), page == 1),
            ("Next", "on", page + 1, page >= last),
        ):
            address = {parameter: str(other) if other > 1 else None}
            key = f"{parameter} {key}"
            st.button(text, disabled=disabled, on_click=set_address, kwargs=address, key=key)


def _page(parameter: str) -> int:
    """Return the page number in the address; the first page is 1."""
    return int(_number(st.query_params.get(parameter)) or 1)


def _number(text: str | None) -> float | None:
    """Return the text as a number, or None if it is not a finite number of 1 or more."""
    try:
        value = math.nan if text is None else float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 1 else None


def _parsed(text: str | None) -> datetime | None:
    """Return the time that a text means, spans before the end of this minute; None if it is no time."""
    end = datetime.now(UTC).replace(second=59, microsecond=0)  # the same for all that is drawn and cached
    try:
        return None if text is None else moment_of(text, end)
    except ValueError:
        return None


def _minutes(time: datetime) -> datetime:
    """Return the time in UTC without seconds and zone, as the widget wants it."""
    return time.astimezone(UTC).replace(second=0, microsecond=0, tzinfo=None)


def _to_address(parameter: str, key: str, *resets: str) -> None:
    """Store a widget's value in the address, or remove the parameter if the widget is empty."""
    value = st.session_state[key]
    if isinstance(value, datetime):
        value = value.replace(second=59, tzinfo=UTC).isoformat()
    elif isinstance(value, float):
        value = f"{value:g}"
    set_address(**dict.fromkeys(resets), **{parameter: value})
