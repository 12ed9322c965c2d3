"""Values of statements: Python and numpy to what the driver accepts, and what it returns to plain Python.

Times are `datetime` in UTC (ArcadeDB stores no zone), bytes are `bytes`; numpy arrays and scalars are
accepted as lists and numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from registry.errors import DatabaseError
from registry.model import as_utc

_PLAIN = frozenset({type(None), bool, int, float, str, bytes})


def outgoing(value: Any) -> Any:
    """Return a value as the driver accepts it, with times in UTC, since ArcadeDB drops the zone."""
    if type(value) in _PLAIN:
        return value
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
        return value.tolist()
    if isinstance(value, datetime):
        return as_utc(value)
    if isinstance(value, Mapping):
        return {key: outgoing(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return value if _PLAIN.issuperset(map(type, value)) else [outgoing(item) for item in value]
    return value


def incoming(value: Any) -> Any:
    """Return a value of the driver as plain Python; graph elements become dictionaries of properties.

    The driver's types are recognised by their methods: importing them here would load the driver.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, list):
        return value if _PLAIN.issuperset(map(type, value)) else [incoming(item) for item in value]
    if hasattr(value, "to_native"):  # dates and times
        native = value.to_native()
        return as_utc(native) if isinstance(native, datetime) else native
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, Mapping):  # also a node and a relationship
        return {key: incoming(item) for key, item in value.items()}
    if hasattr(value, "nodes") and hasattr(value, "relationships"):  # a path
        return [incoming(step) for step in (*value.nodes, *value.relationships)]
    return value


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn a missing or invalid field of stored data, such as ``a stored fabric``, into `DatabaseError`."""
    try:
        yield
    except (KeyError, IndexError, ValueError) as error:
        raise DatabaseError(f"{what} is damaged: {error}") from error
