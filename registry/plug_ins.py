"""Plug-ins of other packages, found by their entry points; a broken one costs nothing but itself.

A package announces a plug-in in its ``pyproject.toml``::

    [project.entry-points."fabric_almanac.strategies"]
    my-strategy = "my_package.my_module:place_ranks"

The object gives what its table needs beyond the name: a description (attribute ``about``, else the first line
of its docstring), and the fields of the table's entries, such as ``launch`` of a launcher, as attributes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from registry.errors import AlmanacError, shorten

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PREFIX = "fabric_almanac"
"""Beginning of the names of all groups."""
MOST_TEXT = 100
"""Most characters of a description."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_OF_EVERY_ENTRY = ("name", "target", "about", "package")

T = TypeVar("T")


class PlugInError(AlmanacError):
    """A plug-in of another package cannot be used.

    Attributes
    ----------
    kind, name, package : str
        Kind and name of the plug-in; package and version that it is from.
    """

    def __init__(self, kind: str, name: str, package: str, why: str) -> None:
        self.kind = kind
        self.name = name
        self.package = package
        super().__init__(
            f"the {kind} {name!r} of {package} cannot be used: {why}; update or remove {package}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenPlugIn:
    """A plug-in that cannot be used.

    Attributes
    ----------
    package : str
        Package and version that it is from.
    reason : str
        Type and text of its error.
    cause : Exception
    """

    name: str
    package: str
    reason: str
    cause: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class PlugIns(Generic[T]):
    """A group of entry points and how its objects become entries of a table.

    Attributes
    ----------
    group : str
        Name of the group after `PREFIX`, such as ``strategies``.
    entry : type
        Dataclass of the entries, with ``name``, ``target``, ``about`` and ``package``.
    needs : tuple of str
        Attributes that an object must have; none: it must be a function.
    values : mapping of str to object
        Fields of all entries of the group.
    """

    group: str
    entry: Callable[..., T]
    needs: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)

    def load(self, taken: Collection[str]) -> Iterator[T | BrokenPlugIn]:
        """Load the plug-ins of the group, in the order of their names.

        Parameters
        ----------
        taken : collection of str
            Names that plug-ins cannot have.
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
        own = [one.name for one in fields(self.entry) if one.name not in _OF_EVERY_ENTRY]  # type: ignore[arg-type]
        given = {name: getattr(plug_in, name) for name in own if hasattr(plug_in, name)}
        return self.entry(
            name=point.name,
            target=f"{point.module}:{point.attr}" if point.attr else point.module,
            about=shorten(" ".join(str(about).split()), MOST_TEXT),
            package=_package(point),
            **(given | self.values),
        )


def _package(point: EntryPoint) -> str:
    """Return name and version of the package of an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "unknown package"
