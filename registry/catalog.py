"""Tables of named things (routings, strategies, checks, formats, ...) and the options of each.

A table has an entry for each thing, or only its name and the place of an object that says the rest. The
module is imported when the name is first used. The keyword-only parameters of a function that have a default
are its options, written as ``name:option=value,option=value``.

Other packages add things by entry points, which are loaded when the table is listed or a name is not in it; a
broken plug-in costs nothing but itself. A package announces one in its ``pyproject.toml``::

    [project.entry-points."fabric_almanac.strategies"]
    my-strategy = "my_package.my_module:place_ranks"

The object gives what its table needs beyond the name: a description (attribute ``about``, else the first line
of its docstring), and the fields of the table's entries, such as ``launch`` of a launcher, as attributes.
"""

from __future__ import annotations

import importlib
import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from registry.errors import InvalidValue, PlugInError, UnknownName, shorten

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


PREFIX = "fabric_almanac"
"""Beginning of the names of all groups."""
MOST_TEXT = 100
"""Most characters of a description."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_OF_EVERY_ENTRY = {"name", "target", "about", "package"}

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenPlugIn:
    """A plug-in that cannot be used."""

    name: str
    package: str
    """Package and version that it is from."""
    reason: str
    """Type and text of its error."""
    cause: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class PlugIns(Generic[T]):
    """A group of entry points and how its objects become entries of a table."""

    group: str
    """Name of the group after `PREFIX`, such as ``strategies``."""
    entry: Callable[..., T]
    """Dataclass of the entries, with ``name``, ``about``, ``package``, and ``target`` unless the fields hold
    the object's own functions."""
    needs: tuple[str, ...] = ()
    """Attributes that an object must have; none: it must be a function."""
    values: dict[str, Any] = field(default_factory=dict)
    """Fields of all entries of the group."""

    def load(self, taken: Collection[str]) -> Iterator[T | BrokenPlugIn]:
        """Load the plug-ins of the group, in the order of their names.

        Args:
            taken: Names that plug-ins cannot have.
        """
        from importlib.metadata import entry_points

        names = set(taken)
        found = entry_points(group=f"{PREFIX}.{self.group}")
        for point in sorted(found, key=lambda point: (point.name, point.value)):
            try:
                yield self._entry(point, names)
            except Exception as error:  # whatever the code of the other package raises
                reason = shorten(f"{type(error).__name__}: {error}")
                yield BrokenPlugIn(name=point.name, package=_package(point), reason=reason, cause=error)
            names.add(point.name)

    def _entry(self, point: EntryPoint, taken: Collection[str]) -> T:
        """Return the entry of a plug-in, or raise what is wrong with it."""
        if not _NAME.fullmatch(point.name):
            raise ValueError("the name may have letters, digits and - _ . only")
        if point.name in taken:
            raise ValueError("the name is in use: choose another one")
        plug_in = point.load()
        missing = [name for name in self.needs if not hasattr(plug_in, name)]
        if missing:
            raise TypeError(f"{point.value} has no {', '.join(missing)}")
        if not self.needs and not callable(plug_in):
            raise TypeError(f"{point.value} is no function")
        about = getattr(plug_in, "about", None) or (plug_in.__doc__ or "").strip().partition("\n")[0]
        names = {one.name for one in fields(self.entry)}  # type: ignore[arg-type]
        given = {name: getattr(plug_in, name) for name in names - _OF_EVERY_ENTRY if hasattr(plug_in, name)}
        if "target" in names:
            given["target"] = f"{point.module}:{point.attr}" if point.attr else point.module
        return self.entry(
            name=point.name,
            about=shorten(" ".join(str(about).split()), MOST_TEXT),
            package=_package(point),
            **(given | self.values),
        )


def _package(point: EntryPoint) -> str:
    """Return name and version of the package of an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "unknown package"


Value = int | float | str | bool
TRUTH: Mapping[str, bool] = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


class Named(Protocol):
    """What a table holds."""

    @property
    def name(self) -> str:
        """Name that users write."""


def imported(target: str) -> Any:
    """Return the object at ``module:object``, or the module if `target` names no object."""
    module, _, path = target.partition(":")
    found = importlib.import_module(module)
    return attrgetter(path)(found) if path else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a table."""

    name: str
    """Name that users write."""
    target: str
    """``module`` or ``module:function``, imported on first use."""
    about: str
    """Description in one line."""
    package: str = ""
    """Package and version that a plug-in is from; empty for the program's own entries."""

    def load(self) -> Any:
        """Return the function (or the module, if `target` names no function)."""
        return imported(self.target)

    def options(self) -> dict[str, Value]:
        """Return the options of the function and their defaults."""
        return options_of(self.load())


E = TypeVar("E", bound=Entry)
N = TypeVar("N", bound=Named)


class Catalog(Generic[N]):
    """Entries of one kind in a fixed order; iteration gives the entries.

    Args:
        kind: Kind of the entries, for errors: ``routing``, ``strategy``, ``check``, ...
        entries: Entries, or their places (``module:object``) by name, which are imported on first use.
        plug_ins: Groups of entry points whose plug-ins follow the entries.

    Raises:
        ValueError: Two entries have the same name.
    """

    def __init__(self, kind: str, entries: Iterable[N] | Mapping[str, str], *plug_ins: PlugIns[N]) -> None:
        self.kind = kind
        self._places = entries if isinstance(entries, Mapping) else {}
        listed = () if isinstance(entries, Mapping) else tuple(entries)
        self._own: dict[str, N | None] = {**dict.fromkeys(self._places), **{one.name: one for one in listed}}
        self._plug_ins = plug_ins
        if len(self._own) < len(listed):
            raise ValueError(f"two entries of the table of {kind}s have the same name")

    @cached_property
    def _found(self) -> tuple[dict[str, N], tuple[BrokenPlugIn, ...]]:
        """The plug-ins by name, and those that cannot be used; loaded once."""
        found: dict[str, N] = {}
        broken: list[BrokenPlugIn] = []
        for group in self._plug_ins:
            for one in group.load(self._own.keys() | found.keys()):
                if isinstance(one, BrokenPlugIn):
                    broken.append(one)
                else:
                    found[one.name] = one
        return found, tuple(broken)

    @property
    def plug_ins(self) -> tuple[N, ...]:
        """Entries from other packages."""
        return tuple(self._found[0].values())

    @property
    def broken(self) -> tuple[BrokenPlugIn, ...]:
        """Plug-ins that cannot be used."""
        return self._found[1]

    def __iter__(self) -> Iterator[N]:
        return map(self.find, self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._found[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all entries, in order."""
        return (*self._own, *self._found[0])

    def find(self, name: str) -> N:
        """Return the entry with a name.

        Raises:
            UnknownName: No entry has the name; lists the closest names.
            PlugInError: A plug-in of this name cannot be used.
        """
        if name in self._own:
            entry = self._own[name]
            if entry is None:
                entry = self._own[name] = imported(self._places[name])
            return entry
        if name in self._found[0]:
            return self._found[0][name]
        for one in self.broken:
            if one.name == name:
                raise PlugInError(self.kind, name, one.package, one.reason) from one.cause
        raise UnknownName(self.kind, name, self.names)


@dataclass(frozen=True, slots=True)
class Choice(Generic[E]):
    """An entry and the options chosen for it."""

    entry: E
    options: tuple[tuple[str, Value], ...] = ()
    """Chosen options; the others keep their defaults."""

    def __str__(self) -> str:
        chosen = ",".join(
            f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in self.options
        )
        return f"{self.entry.name}:{chosen}" if chosen else self.entry.name

    @property
    def name(self) -> str:
        """Name of the entry."""
        return self.entry.name

    def function(self) -> Callable[..., Any]:
        """Return the entry's function with the options applied."""
        return partial(self.entry.load(), **dict(self.options))


def split_options(text: str) -> tuple[str, dict[str, str]]:
    """Split ``name:key=value,key=value`` into the name and the options as text.

    Raises:
        InvalidValue: An option has no ``=``, or is given twice.
    """
    name, colon, rest = text.partition(":")
    found: dict[str, str] = {}
    for item in rest.split(",") if colon else ():
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise InvalidValue(name, f"{item!r} is not KEY=VALUE")
        if key in found:
            raise InvalidValue(f"{name}.{key}", "is given twice")
        found[key] = value
    return name, found


def options_of(function: Callable[..., Any]) -> dict[str, Value]:
    """Return the options of a function and their defaults."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and isinstance(parameter.default, Value)
    }


def read_options(name: str, given: Mapping[str, str], known: Mapping[str, Value]) -> dict[str, Value]:
    """Convert options from text to the types of their defaults.

    Args:
        name: Name of the entry that has the options, for errors.
        known: All options of the entry and their defaults.

    Raises:
        UnknownName: There is no such option; lists the closest names.
        InvalidValue: A value does not have the type of its option.
    """
    found = {}
    for key, text in given.items():
        if key not in known:
            raise UnknownName(f"{name} option", key, known, remedy="" if known else f"{name} has none")
        found[key] = _value(f"{name}.{key}", text, type(known[key]))
    return found


def _value(field: str, text: str, kind: type[Value]) -> Value:
    """Convert a text to an option's type, or raise `InvalidValue`."""
    if kind is bool:
        if text not in TRUTH:
            raise InvalidValue(field, f"{text!r} is neither true nor false")
        return TRUTH[text]
    try:
        value = kind(text)
        if isinstance(value, str) or math.isfinite(value):
            return value
        raise ValueError
    except ValueError:
        what = "whole number" if kind is int else "number"
        raise InvalidValue(field, f"{text!r} is no {what}") from None
