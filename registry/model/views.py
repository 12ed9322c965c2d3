"""How values show themselves: in one line of text, as tables, as graphs and as pictures.

The modules that know other libraries, and the pictures, are imported by name when they are needed: they are
above this one.

Checks of arguments: each returns the value in the needed type, or names the argument in its error.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, TypeVar

from registry.errors import InvalidValue, shorten

WIDTH = 160
"""Most characters of the text of a value."""
_LONG = 24
"""Most characters of a text in it; an object has twice as many."""
_FEW = 3
"""Most items of a sequence that are written out."""


def one_line(value: Any) -> str:
    """Return the text of a dataclass in one line, without defaults; arrays by their type and length."""
    shown = [
        f"{field.name}={_brief(getattr(value, field.name))}"
        for field in fields(value)
        if field.init and not _is_default(getattr(value, field.name), field.default)
    ]
    return shorten(f"{type(value).__name__}({', '.join(shown)})", WIDTH)


class Tabular:
    """A value with a table: `columns` returns it as arrays, `to_pandas` as a DataFrame."""

    __slots__ = ()

    def columns(self) -> Mapping[str, Any]:
        """Return the columns of the table: one value per row in each."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame.

        Raises:
            MissingExtra: pandas is not installed.
        """
        return load("registry.interchange", "data_frame")(self.columns())


class Drawn:
    """A value that notebooks show as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        """Return the picture as SVG."""
        return str(load("dashboard.map.layouts", "picture")(self))


class Rows(list[dict[str, Any]], Tabular):
    """Rows of an answer of the database, each a dictionary; `to_pandas` returns them as a DataFrame."""

    def columns(self) -> Mapping[str, Any]:
        """Return the columns of the rows; none if there are no rows."""
        return {name: [row[name] for row in self] for name in (self[0] if self else ())}


def to_networkx(value: Any) -> Any:
    """Return the value as a networkx graph: see `registry.interchange.to_networkx`."""
    return load("registry.interchange", "to_networkx")(value)


def load(module: str, function: str) -> Any:
    """Import a function of a module above this one."""
    return getattr(importlib.import_module(module), function)


def _is_default(item: Any, default: Any) -> bool:
    return item is default or (isinstance(item, str | int | float) and bool(item == default))


def _brief(item: Any) -> str:
    """Return a short text of a field."""
    numpy = sys.modules.get("numpy")  # not imported for this alone
    if numpy is not None and isinstance(item, numpy.ndarray):
        return f"{item.dtype.name}[{', '.join(map(str, item.shape))}]"
    if isinstance(item, str):
        return repr(shorten(item, _LONG))
    if isinstance(item, datetime):
        return item.isoformat(timespec="seconds")
    plain = isinstance(item, Collection) and not is_dataclass(item) and not isinstance(item, bytes)
    if plain and len(item) > _FEW:
        return f"<{len(item)} items>"
    return shorten(" ".join(repr(item).split()), 2 * _LONG)


T = TypeVar("T")


def content(value: Any, kind: type[T], label: str) -> T:
    """Return a value of a type, or the one that an object holds in the field of that name.

    A stored object may so be given instead of its content: a `Snapshot` instead of its ``fabric``.

    Raises:
        InvalidValue
    """
    found = value if isinstance(value, kind) else getattr(value, kind.__name__.lower(), None)
    if isinstance(found, kind):
        return found
    raise InvalidValue(label, f"must be {_a(kind.__name__)}, not {_a(type(value).__name__)}")


def whole_number(value: Any, label: str, low: int | None = 0) -> int:
    """Return a whole number of at least `low`; one written as 1e6 is accepted.

    Raises:
        InvalidValue: A fraction, no number, or too low a number.
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

    Raises:
        InvalidValue: One text instead of several, or a value of another type.
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
