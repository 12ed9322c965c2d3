"""The address of a server: a Bolt URI without credentials, which would be printed and logged with it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

SCHEMES = frozenset({"bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"})
ELSEWHERE = (
    "it holds a user or a password, which others could read: give them as ALMANAC_DB_USER and "
    "ALMANAC_DB_PASSWORD, or db_user and db_password_file"
)
MORE = (
    "only ?policy=NAME may follow the host and the port: a user and a password, which others could read "
    "here, are given as ALMANAC_DB_USER and ALMANAC_DB_PASSWORD, or db_user and db_password_file"
)
_AFTER = re.compile(r"(?s)(?!\?policy=[\w.-]*$)([?#;&]).*")


def credentials(uri: str) -> str:
    """Return the fault of an address that holds what may be a user or a password; empty if it does not."""
    if "@" in uri:
        return ELSEWHERE
    return MORE if _AFTER.search(uri) else ""


def fault(uri: str) -> str:
    """Return why an address cannot be used; empty if it can."""
    if found := credentials(uri):
        return found
    try:
        parts = urlsplit(uri)
        if parts.scheme in SCHEMES and parts.hostname and (parts.port is None or parts.port):
            return ""
    except ValueError:  # a port that is none, half an address of IPv6
        pass
    return "this is not a Bolt address"


def shown(uri: str) -> str:
    """Return an address for messages: what may be a user or a password is masked."""
    return _AFTER.sub(r"\1***", re.sub(r"(?s)^((?:[A-Za-z][A-Za-z0-9+.-]*:)?/*).*@", r"\1***@", uri))
