"""Values that may be missing, where a test knows that they are there."""

from __future__ import annotations

from typing import TypeVar

Value = TypeVar("Value")


def sure(value: Value | None) -> Value:
    """Return a value, which must not be None."""
    assert value is not None
    return value
