"""Nodes of Kubernetes: their names and labels.

The node of a host has its name in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from registry.errors import InvalidValue

HOST_LABEL = "kubernetes.io/hostname"
"""Label of each node with its name."""
LONGEST_NAME = 253
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def node_name(host: str) -> str:
    """Return the name of a host's node; raises `InvalidValue` if it is none (RFC 1123)."""
    name = host.lower()
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise InvalidValue("fabric.names", f"{host!r} is no name of a Kubernetes node (RFC 1123)")
    return name


def label_lines(labels: Iterable[tuple[str, Mapping[str, str]]]) -> str:
    """Return a line ``kubectl label`` for each node with its labels."""
    return "".join(
        f"kubectl label node {node} {' '.join(f'{key}={value}' for key, value in of.items())} --overwrite\n"
        for node, of in labels
    )
