"""Widgets whose state is the page's address: a link that is sent shows the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import streamlit as st

from dashboard.widgets.messages import plain
from registry import units
from registry.errors import UnknownName
from registry.model import as_utc

STOPS = 200
"""Most stops of a slider, the newest ones."""
NOW = "now"


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
    """A select box; the address tells what is chosen, `default` or the first option where it tells nothing.

    Parameters
    ----------
    parameter : str
        Of the address.
    options : sequence of str
    show : callable
        Text of an option.
    kind : str
        What an option is, for the error.
    empty : str, optional
        Shown where nothing is chosen, which is then possible and the default.
    default : str, optional
        Another one of the options than the first.
    resets : sequence of str
        Parameters that a change of this one takes out of the address.

    Raises
    ------
    UnknownName
        The address names none of the options.
    """
    wanted = st.query_params.get(parameter)
    if wanted is not None and wanted not in options:
        raise UnknownName(kind or label.lower(), wanted, options)
    key = f"choose {parameter}"
    if default is None and empty is None and options:
        default = options[0]
    st.session_state[key] = default if wanted is None else wanted
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


def toggle(label: str, parameter: str, options: Mapping[str, str], default: str) -> str:
    """A row of buttons of which one is pressed; options map a value of the address to its text."""
    wanted = st.query_params.get(parameter, default)
    if wanted not in options:
        st.warning(f"{label} can be {', '.join(options)}, not {plain(repr(wanted))}.")
    key = f"choose {parameter}"
    st.session_state[key] = wanted if wanted in options else default
    st.segmented_control(
        label,
        list(options),
        format_func=options.__getitem__,
        key=key,
        required=True,
        on_change=_to_address,
        args=(parameter, key),
    )
    return str(st.session_state[key] or default)


def moment(
    label: str, parameter: str, first: datetime, last: datetime, *, resets: Sequence[str] = ()
) -> datetime | None:
    """A time in UTC: the end of the minute that is chosen, or just what the address says; None is now.

    Parameters
    ----------
    first, last : datetime
        What can be chosen.
    resets : sequence of str
        Parameters that a change of this one takes out of the address.
    """
    key = f"choose {parameter}"
    low, high = _minutes(first), _minutes(last)
    text = st.query_params.get(parameter)
    given = _parsed(text)
    if text is not None and given is None:
        st.warning(f"{plain(repr(text))} is no time such as 2026-11-21T08:00; the latest is shown.")
    st.session_state[key] = None if given is None else min(max(_minutes(given), low), high)
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


def stops(label: str, parameter: str, moments: Sequence[datetime]) -> None:
    """A slider over times at which something became another, and now, its right end; none for one of them.

    It stands at the last stop at or before the time that the address tells, which stays as it is.
    """
    if len(moments) < 2:
        return
    texts = {moment.isoformat(): units.moment_text(moment) for moment in moments[-STOPS:]} | {NOW: NOW}
    given = _parsed(st.query_params.get(parameter))
    passed = [moment.isoformat() for moment in moments[-STOPS:] if given is None or moment <= given]
    key = f"stop {parameter}"
    st.session_state[key] = NOW if given is None else passed[-1] if passed else next(iter(texts))
    st.select_slider(
        label,
        list(texts),
        format_func=texts.__getitem__,
        key=key,
        on_change=_stop_to_address,
        args=(parameter, key),
    )


def _stop_to_address(parameter: str, key: str) -> None:
    chosen = str(st.session_state[key])
    if chosen == NOW:
        st.query_params.pop(parameter, None)
    else:
        st.query_params[parameter] = chosen


def parsed_moment(parameter: str) -> datetime | None:
    """The time in UTC that the address says; None where it says none; nonsense is told."""
    text = st.query_params.get(parameter)
    given = _parsed(text)
    if text is not None and given is None:
        st.warning(f"{plain(repr(text))} is no time such as 2026-11-21T08:00; the default is shown.")
    return given


def _parsed(text: str | None) -> datetime | None:
    try:
        return None if text is None else as_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


def _minutes(at: datetime) -> datetime:
    """Without seconds and zone, which the widget does not know; UTC is what it shows."""
    return at.astimezone(UTC).replace(second=0, microsecond=0, tzinfo=None)


def _minute_end(at: datetime) -> str:
    return at.replace(second=59, tzinfo=UTC).isoformat()


def _to_address(parameter: str, key: str, *resets: str) -> None:
    value = st.session_state[key]
    for other in resets:
        st.query_params.pop(other, None)
    if value is None:
        st.query_params.pop(parameter, None)
    else:
        st.query_params[parameter] = _minute_end(value) if isinstance(value, datetime) else str(value)
