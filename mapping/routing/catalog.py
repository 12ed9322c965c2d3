"""The routings by name, how one is written, and which of them fits a fabric.

A new routing is one file and one line here. Keyword-only parameters of its ``build`` with a default are
options, which a text may set: ``up-down:root=6``. Modules are imported when a name is used.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from numpy.typing import ArrayLike

from mapping.options import Value, options_of, read_options, split_options
from mapping.routing.routes import ALL_CONNECTED, Routes
from registry.errors import UnknownName
from registry.model import Fabric


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A routing by name.

    Attributes
    ----------
    name : str
    module : str
        Has ``build(fabric, hosts, *, rails, ...) -> Routes``.
    about : str
    """

    name: str
    module: str
    about: str


ENTRIES = (
    Entry(
        name="tables",
        module="mapping.routing.forwarding_tables",
        about="the switches' forwarding tables, walked from LID to LID",
    ),
    Entry(
        name="shortest-paths",
        module="mapping.routing.shortest_paths",
        about="all shortest paths share equally (Hoefler and Snir 2011, equations 3 to 5)",
    ),
    Entry(
        name="dimension-order",
        module="mapping.routing.dimension_order",
        about="tori and meshes: one axis after the other (Hoefler and Snir 2011, section 2.3)",
    ),
    Entry(
        name="up-down",
        module="mapping.routing.up_down",
        about="all shortest paths that never turn up again (Orduña, Silla and Duato 2004, section 3)",
    ),
    Entry(
        name="path-table",
        module="mapping.routing.path_table",
        about="the user's own paths and their probabilities (Hoefler and Snir 2011, section 2.1)",
    ),
    Entry(
        name="least-loaded",
        module="mapping.routing.least_loaded",
        about="single shortest paths, least loaded first (Hoefler and Snir 2011, Algorithm 3)",
    ),
    Entry(
        name="valiant",
        module="mapping.routing.valiant",
        about="by way of a random switch, a stated share or all (Valiant 1982); loads are exact",
    ),
    Entry(
        name="ugal",
        module="mapping.routing.ugal",
        about="adaptive: minimal but for a stated share by way of a random switch (Singh 2005, UGAL)",
    ),
    Entry(
        name="ecmp",
        module="mapping.routing.ecmp",
        about="each flow of a pair hashed onto one shortest way (RFC 2992)",
    ),
)
DEFAULTS = ("tables", "shortest-paths")
"""The routings of which a fabric is judged on one unless told; see `choose_routing`."""


@dataclass(frozen=True, slots=True)
class Routing:
    """A routing and its options.

    Attributes
    ----------
    entry : Entry
    options : tuple of (str, int, float, str or bool)
        Those that differ from their defaults, in the order of the routing's parameters.
    """

    entry: Entry
    options: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        said = ",".join(
            f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in self.options
        )
        return f"{self.entry.name}:{said}" if said else self.entry.name

    @classmethod
    def parse(cls, text: str) -> Routing:
        """The routing written as ``name`` or ``name:option=value,option=value``.

        Raises
        ------
        UnknownName
            No such routing or option; with the closest names.
        InvalidValue
            A value that does not suit its option.
        """
        known = {entry.name: entry for entry in ENTRIES}
        name, given = split_options(text)
        if name not in known:
            raise UnknownName("routing", name, known)
        defaults = options_of(_load(known[name]))
        defaults.pop("rails", None)
        found = read_options(name, given, defaults)
        chosen = ((key, found[key]) for key in defaults if key in found and found[key] != defaults[key])
        return cls(known[name], tuple(chosen))

    def build(self, fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED) -> Routes:
        """Routes between hosts (vertices); see `build_routes`."""
        routes = _load(self.entry)(fabric, hosts, rails=rails, **dict(self.options))
        routes.name = str(self)
        return routes


def build_routes(
    routing: str | Routing, fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED
) -> Routes:
    """Routes between hosts (vertices) by a routing.

    Parameters
    ----------
    routing : str or Routing
        As text, such as ``shortest-paths`` or ``up-down:root=6``.
    rails : str
        How a pair's bytes are split over adapters: ``all-connected`` or ``same-rail``.

    Raises
    ------
    UnknownName
        A routing, option or rails rule that there is not.
    InvalidValue
        A value that does not suit its option, or a fabric that lacks what the routing needs.
    """
    chosen = Routing.parse(routing) if isinstance(routing, str) else routing
    return chosen.build(fabric, hosts, rails=rails)


def choose_routing(fabric: Fabric) -> tuple[str, str]:
    """The routing that a fabric is judged on unless told, and why in a few words."""
    from mapping.routing import forwarding_tables

    if fabric.tables is None:
        return "shortest-paths", "the fabric has no forwarding tables"
    if forwarding_tables.complete(fabric):
        return "tables", "the fabric has complete forwarding tables"
    return "shortest-paths", "the fabric's forwarding tables do not join all of its hosts"


def _load(entry: Entry) -> Callable[..., Routes]:
    return cast(Callable[..., Routes], importlib.import_module(entry.module).build)
