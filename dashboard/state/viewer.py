"""Who looks, and what they may see of users: names or pseudonyms, all jobs or their own."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import streamlit as st

OTHERS = "another user's job"
"""What a job is called that the viewer may not see: its traffic counts, its name does not show."""
LOGIN, HEADER = "login:", "header:"
"""Beginnings of an `Access.only` that is told by the login, or by a proxy; no user's name holds a colon."""
_FOLDERS = re.compile(r"(?:^[\w.~-]+|(?<![^\s'\"(])(?:[A-Za-z]:)?)[/\\](?:[^/\\\s:'\"]+[/\\])*(?=[^/\\\s])")
"""The folders of a path in a message: of an absolute one anywhere, of another at the beginning."""
PSEUDONYM_LETTERS = 8
"""Letters of a pseudonym, five bits each: two of 10,000 users share one with a chance of 1 in 20,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """What one who looks may see of users.

    Attributes
    ----------
    key : bytes or None
        Names are shown as pseudonyms made with it; None: as they are.
    only : str or None
        The one user whose jobs are shown; None: all.
    """

    key: bytes | None = field(default=None, repr=False)
    only: str | None = None

    def name(self, user: str) -> str:
        """What is shown for a user's name; nothing for nothing."""
        return user if self.key is None or not user else pseudonym(user, self.key)

    def sees(self, user: str) -> bool:
        """Whether this user's jobs are shown."""
        return self.only is None or user == self.only

    def real(self, shown: str, known: Iterable[str]) -> str | None:
        """The one of the known users that is shown so; None where there is none that may be seen."""
        return next((user for user in known if self.name(user) == shown and self.sees(user)), None)

    def path(self, text: str) -> str:
        """A file's path; where names are hidden without its folders, which may tell one."""
        return text if self.key is None else text.replace("\\", "/").rsplit("/", 1)[-1]

    def told(self, text: str) -> str:
        """A message; where names are hidden, paths in it are without their folders."""
        return text if self.key is None else _FOLDERS.sub("", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may see what, as the settings say it.

    Attributes
    ----------
    key : bytes or None
        Of pseudonyms; None: names are shown.
    only : str or None
        A user to whose jobs all pages are limited; ``login:CLAIM``, whoever logged in by OpenID Connect,
        named by that claim; ``header:NAME``, whom a proxy in front names in that header of the request.
    operators : frozenset of str
        Users who see all jobs, and all names, where `only` is told by login or header.
    """

    key: bytes | None = field(default=None, repr=False)
    only: str | None = None
    operators: frozenset[str] = frozenset()

    def viewer(self, claims: Mapping[str, object], headers: Mapping[str, str]) -> Viewer | None:
        """What the one who looks may see; None where nobody is named, who then sees nothing.

        Parameters
        ----------
        claims : mapping of str to object
            Of the login; empty without one.
        headers : mapping of str to str
            Of the request.
        """
        if self.only is None or not self.only.startswith((LOGIN, HEADER)):
            return Viewer(key=self.key, only=self.only)
        if self.only.startswith(LOGIN):
            told = claims.get(self.only.removeprefix(LOGIN))
        else:
            told = headers.get(self.only.removeprefix(HEADER))
        user = str(told).strip() if told else ""
        if not user:
            return None
        return Viewer() if user in self.operators else Viewer(key=self.key, only=user)


NOBODY = Viewer(only=LOGIN)
"""Who sees nothing: no user has such a name."""
EVERYTHING = Access()
"""Names and all jobs."""


def current(access: Access) -> Viewer | None:
    """The viewer of the page that is drawn now; None where the settings want a name and there is none."""
    claims = dict(st.user) if access.only is not None and access.only.startswith(LOGIN) else {}
    return access.viewer(claims, st.context.headers)


def logged_in(access: Access) -> str | None:
    """The name that the login tells, where the settings go by one; empty for no name, None for no login."""
    if access.only is None or not access.only.startswith(LOGIN) or not st.user.get("is_logged_in"):
        return None
    return str(st.user.get(access.only.removeprefix(LOGIN)) or "")


def pseudonym(user: str, key: bytes) -> str:
    """A name that says nothing, always the same for a user and a key: an HMAC with SHA-256, cut short."""
    digest = hmac.new(key, user.encode("utf-8"), hashlib.sha256).digest()
    return "user-" + base64.b32encode(digest).decode("ascii")[:PSEUDONYM_LETTERS].lower()
