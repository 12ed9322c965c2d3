"""Checks of arguments: each returns the value in the needed type, or names the argument in its error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from registry.errors import InvalidValue

T = TypeVar("T")


def content(value: Any, kind: type[T], label: str) -> T:
    """Return a value of a type, or the one that an object holds in the field of that name.

    A stored object may so be given instead of its content: a `Snapshot` instead of its ``fabric``.

    Raises
    ------
    InvalidValue
    """
    found = value if isinstance(value, kind) else getattr(value, kind.__name__.lower(), None)
    if isinstance(found, kind):
        return found
    raise InvalidValue(label, f"must be {_a(kind.__name__)}, not {_a(type(value).__name__)}")


def whole_number(value: Any, label: str, low: int | None = 0) -> int:
    """Return a whole number of at least `low`; one written as 1e6 is accepted.

    Raises
    ------
    InvalidValue
        A fraction, no number, or too low a number.
    """
    try:
        found = int(value)
    except (OverflowError, TypeError, ValueError):
        found = None
    if found is None or isinstance(value, str | bytes | bool) or found != value:
        raise InvalidValue(label, f"must be a whole number, not {value!r}")
    if low is not None and found < low:
        raise InvalidValue(label, "must not be below zero" if low == 0 else f"must be at least {low}")
    return found


def sequence_of(values: Iterable[Any], kind: type[T], label: str) -> tuple[T, ...]:
    """Return the values as a tuple.

    Raises
    ------
    InvalidValue
        One text instead of several, or a value of another type.
    """
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise InvalidValue(label, f"must be a sequence, not {values!r}")
    found = tuple(values)
    for value in found:
        if not isinstance(value, kind):
            raise InvalidValue(label, f"must be {kind.__name__}, not {value!r}")
    return found


def _a(name: str) -> str:
    """Return the name of a type with its article."""
    name = "array" if name == "ndarray" else name
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"


def first_repeat(names: Sequence[str]) -> str:
    """Return the first repeated name, or empty text."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""
