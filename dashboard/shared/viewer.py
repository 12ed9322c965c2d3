"""Permissions of the current user: names or pseudonyms of other users, all jobs or only their own.

The pages of the dashboard by name, with the current viewer and the background searches.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import streamlit as st

from dashboard.shared.searches import Searches
from mapping.checks.finding import ErrorLimits

OTHERS = "another user's job"
"""Text shown for jobs that the viewer may not see: their traffic is counted, their names are hidden."""
LOGIN, HEADER = "login:", "header:"
"""Prefixes of `Access.only` if a login or a proxy names the user; no user name contains a colon."""
_FOLDERS = re.compile(r"(?:^[\w.~-]+|(?<![^\s'\"(])(?:[A-Za-z]:)?)[/\\](?:[^/\\\s:'\"]+[/\\])*(?=[^/\\\s])")
"""The folders of a path in a message: of an absolute path anywhere, of a relative one at the beginning."""
PSEUDONYM_LETTERS = 8
"""Letters of a pseudonym, five bits each: two of 10,000 users share one with a chance of 1 in 20,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """What the current user may see of other users."""

    key: bytes | None = field(default=None, repr=False)
    """Secret key of the pseudonyms that are shown instead of user names, or None to show the names."""
    only: str | None = None
    """The only user whose jobs are shown, or None to show all jobs."""

    def name(self, user: str) -> str:
        """Return the text shown for a user name; an empty name stays empty."""
        return user if self.key is None or not user else pseudonym(user, self.key)

    def sees(self, user: str) -> bool:
        """Return True if the jobs of this user are shown."""
        return self.only is None or user == self.only

    def real(self, shown: str, known: Iterable[str]) -> str | None:
        """Return the visible user whose name is shown as this text, or None."""
        return next((user for user in known if self.name(user) == shown and self.sees(user)), None)

    def path(self, text: str) -> str:
        """Return a file's path; without folders if names are hidden, since a folder may be a user name."""
        return text if self.key is None else text.replace("\\", "/").rsplit("/", 1)[-1]

    def message(self, text: str) -> str:
        """Return a message; without the folders of paths in it if names are hidden."""
        return text if self.key is None else _FOLDERS.sub("", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The settings that decide who may see what."""

    key: bytes | None = field(default=None, repr=False)
    """Secret key of the pseudonyms, or None to show user names."""
    only: str | None = None
    """User to whose jobs all pages are limited, or None for no limit. ``login:CLAIM``: the user who logged in
    by OpenID Connect, named by that claim. ``header:NAME``: the user whom a reverse proxy names in that
    header of the request."""
    operators: frozenset[str] = frozenset()
    """Users who see all jobs and all names if `only` is a login or a header."""

    def viewer(self, claims: Mapping[str, object], headers: Mapping[str, str]) -> Viewer | None:
        """Return what the current user may see, or None if a user name is needed but not known.

        Args:
            claims: Claims of the login; empty without a login.
            headers: Headers of the request.
        """
        if self.only is None or not self.only.startswith((LOGIN, HEADER)):
            return Viewer(key=self.key, only=self.only)
        if self.only.startswith(LOGIN):
            name = claims.get(self.only.removeprefix(LOGIN))
        else:
            name = headers.get(self.only.removeprefix(HEADER))
        user = str(name).strip() if name else ""
        if not user:
            return None
        return Viewer() if user in self.operators else Viewer(key=self.key, only=user)


NOBODY = Viewer(only=LOGIN)
"""A viewer who sees no jobs: no user has this name."""
EVERYTHING = Access()
"""Access to all jobs, with user names."""


def current(access: Access) -> Viewer | None:
    """Return the viewer of the current request, or None if a user name is needed but not known."""
    claims = dict(st.user) if access.only is not None and access.only.startswith(LOGIN) else {}
    return access.viewer(claims, st.context.headers)


def logged_in(access: Access) -> str | None:
    """Return the user name of the login: empty if it has none, None without a login."""
    if access.only is None or not access.only.startswith(LOGIN) or not st.user.get("is_logged_in"):
        return None
    return str(st.user.get(access.only.removeprefix(LOGIN)) or "")


def pseudonym(user: str, key: bytes) -> str:
    """Return a pseudonym, always the same for a user and a key: a shortened HMAC with SHA-256."""
    digest = hmac.new(key, user.encode("utf-8"), hashlib.sha256).digest()
    return "user-" + base64.b32encode(digest).decode("ascii")[:PSEUDONYM_LETTERS].lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What every page receives: the other pages, to link to them, the viewer and the searches."""

    overview: st.Page
    fabric: st.Page
    jobs: st.Page
    planner: st.Page
    trends: st.Page
    data: st.Page
    searches: Searches
    """Searches that run in the background."""
    viewer: Viewer = field(default_factory=Viewer)
    """What the current user may see of other users; every page that shows users or jobs must apply it."""
    limits: ErrorLimits = field(default_factory=ErrorLimits)
    """Growth of error counters from which ports are reported."""
