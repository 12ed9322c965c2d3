"""Names of this machine that requests may carry in their Host header.

A browser sends the name that its user typed. A page of another site whose name its owner lets point to this
machine (DNS rebinding) carries that name, and is refused.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

import psutil

LOCAL = ("localhost", "127.0.0.1", "::1")


def allowed_hosts(address: str, more: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names and addresses under which a server that listens on `address` is reached.

    Args:
        more: Further names, such as that of a reverse proxy: the setting ``allowed_hosts``.
    """
    names = [*LOCAL, address, *more]
    if address not in LOCAL:
        names += [socket.gethostname(), socket.getfqdn()]
        names += [one.address.partition("%")[0] for own in psutil.net_if_addrs().values() for one in own]
    return tuple(dict.fromkeys(name.lower().rstrip(".") for name in names if name))


def is_allowed(host: str, allowed: Iterable[str]) -> bool:
    """Return True if a Host header names one of the allowed hosts, with any port, or is an address.

    The owner of another site decides where a name leads, but has no page under the address of this machine.
    """
    try:
        parts = urlsplit(f"//{host}")
        name = (parts.hostname or "").rstrip(".")
        is_plain = parts.port is None or parts.port >= 0
    except ValueError:
        return False
    if parts.username is not None or parts.path or parts.query or parts.fragment or not is_plain:
        return False
    return name in allowed or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
