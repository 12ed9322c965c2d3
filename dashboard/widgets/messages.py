"""What the pages say when there is nothing to show, and text from the database as plain text."""

from __future__ import annotations

import re

import streamlit as st

from registry.errors import AlmanacError, DatabaseUnavailable, SchemaVersionError, UnknownName

_ADDRESS = re.compile(r"(://|www(?=\.)|@)", re.IGNORECASE)
"""Where addresses must be broken, by a character that is not seen, so that they do not become links."""
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


CONVENTION = (
    "Every running job is taken to send its profile once in the same period: a link's time is all jobs' "
    "bytes over its capacity, in seconds a period."
)
"""What loads of running jobs together mean."""


def plain(text: str) -> str:
    """Text that Markdown shows as it is: names in the database may hold markup."""
    unlinked = _ADDRESS.sub("\\1\N{WORD JOINER}", " ".join(text.split()))
    return _PUNCTUATION.sub(r"\\\1", unlinked)


def show_error(error: AlmanacError) -> None:
    """An error that was raised on purpose, and what mends it."""
    if isinstance(error, DatabaseUnavailable):
        st.error(f"**The database does not answer.** {plain(str(error))}", icon=":material/cloud_off:")
        st.markdown("Look at it with")
        st.code("almanac doctor", language=None)
        st.button("Try again", type="primary", key="try_again")
    elif isinstance(error, SchemaVersionError):
        st.error(f"**The database is of another version.** {plain(str(error))}")
    else:
        st.error(plain(str(error)))


def show_unknown(error: UnknownName, parameter: str) -> None:
    """A name in the address that nothing has; the closest names can be clicked.

    Parameters
    ----------
    parameter : str
        Of the address, that held the name.
    """
    reason = f"there is no {error.kind} {error.name!r}" if error.close else error.reason
    st.error(plain(reason[0].upper() + reason[1:]), icon=":material/search_off:")
    if error.close:
        st.markdown("The closest that there are:")
    with st.container(horizontal=True):
        for value in error.close:
            st.button(plain(value), on_click=_go, args=(parameter, value), key=f"closest {value}")
        st.button("Show the default", on_click=_forget, args=(parameter,), key=f"forget {parameter}")


def show_nobody(login: str | None = None) -> None:
    """That pages are limited to the jobs of who looks, and nobody is named.

    Parameters
    ----------
    login : str, optional
        The name that a login tells; empty for a login that tells none.
    """
    if login is not None:
        told = "**These pages show each user's own jobs, and your login does not tell your name.**"
        st.error(f"{told} Ask who runs them.", icon=":material/lock:")
        return
    st.error("**These pages show each user's own jobs, and you are not logged in.**", icon=":material/lock:")
    if "is_logged_in" in st.user:
        st.button("Log in", type="primary", on_click=st.login, key="log_in")
    else:
        st.markdown("Open them through the proxy that logs you in, or ask who runs them.")


def show_login(name: str) -> None:
    """At the end of a page: who is logged in, and the way out."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Logged in as {plain(name)}." if name else "Logged in.")
        st.button("Log out", on_click=st.logout, type="tertiary", icon=":material/logout:", key="log_out")


def show_empty(what: str, *commands: str) -> None:
    """That something is not there yet, and the commands that bring it."""
    st.info(what, icon=":material/inventory_2:")
    for command in commands:
        st.code(command, language=None)


def _go(parameter: str, value: str) -> None:
    st.query_params[parameter] = value


def _forget(parameter: str) -> None:
    st.query_params.pop(parameter, None)
