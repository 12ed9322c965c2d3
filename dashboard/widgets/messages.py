"""Messages on pages (errors, unknown names, nothing to show), and text from the database as plain text."""

from __future__ import annotations

import re

import streamlit as st

from dashboard.widgets.address import set_address
from registry.errors import AlmanacError, DatabaseUnavailable, InvalidValue, SchemaVersionError, UnknownName

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

    Parameters
    ----------
    parameter : str
        Name of the parameter of the address that holds the unknown name.
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

    Parameters
    ----------
    login : str, optional
        User name of the login; empty if the login contains none, None if nobody is logged in.
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
