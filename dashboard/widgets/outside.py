"""What is drawn outside of the part of a page that refreshes itself: dialogs, and the progress of a search.

Both are fragments of Streamlit. Inside another fragment, one can leave the window empty: if that fragment
runs twice before the server has sent what its first run drew, the second run drops what holds the inner
fragment, but not the inner fragment's contents, and the browser stops at them. So the page draws them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, NoReturn

import streamlit as st

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
