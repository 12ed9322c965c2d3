"""Helpers of the ibnetdiscover tests: real scans, a small generated one, and ways to change it."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from ingest.formats.fabrics import ibnetdiscover
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.writers.infiniband import fat_tree, ibnetdiscover_text
from registry.model import Fabric
from tests.support import inputs

TREE = ibnetdiscover_text(fat_tree(2, 3, 2, cables=2))
"""Two leaves of three hosts each, two cables to each of two spines: 14 cables."""


def raw(name: str) -> str:
    """Return the text of a file of tests/data."""
    return inputs.read(name).decode()


def read(text: str, options: Options | None = None) -> Parsed:
    return inputs.parse(ibnetdiscover, text, options, path="scan")


def fabric_of(text: str, options: Options | None = None) -> Fabric:
    fabric = read(text, options).fabric
    assert fabric is not None
    return fabric


def swap(text: str, pattern: str, by: str | Callable[[re.Match[str]], str]) -> str:
    """Replace a pattern everywhere in the text; it must occur."""
    changed, count = re.subn(pattern, by, text, flags=re.MULTILINE)
    assert count
    return changed


def same(one: Fabric, other: Fabric) -> bool:
    """Return True if two fabrics have the same vertices, cables and adapter ports."""
    columns = (
        "source",
        "target",
        "capacity",
        "source_port",
        "target_port",
        "source_adapter",
        "target_adapter",
    )
    return (
        one.names == other.names
        and all(np.array_equal(getattr(one.links, name), getattr(other.links, name)) for name in columns)
        and np.array_equal(one.adapters.port_guid, other.adapters.port_guid)
        and np.array_equal(one.adapters.port_lid, other.adapters.port_lid)
    )
