"""The routings by name, how one is written, and which of them fits a fabric.

A new routing is one file and one line here, with a function ``build(fabric, hosts, *, rails, ...)`` that
returns the `Routes` between some hosts (unique vertices). Its other parameters are options, which are set in
a text: ``up-down:root=6``; its docstring describes only them. `UnknownName` is raised for an unknown rails
rule or word, `InvalidValue` for a value out of range and for a fabric that lacks what the routing needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from mapping.routing.routes import ALL_CONNECTED, Routes
from registry.catalog import Catalog, Choice, Entry, PlugIns, read_options, split_options
from registry.model import Fabric
from registry.model.views import content


def _routing(name: str, about: str, function: str = "") -> Entry:
    """Return the routing of a module; default: `build` in the module of its name."""
    function = function or f"{name.replace('-', '_')}:build"
    return Entry(name=name, target=f"mapping.routing.{function}", about=about)


ROUTINGS = Catalog(
    "routing",
    (
        _routing(
            "tables", "the switches' forwarding tables, walked from LID to LID", "forwarding_tables:build"
        ),
        _routing(
            "shortest-paths", "all shortest paths share equally (Hoefler and Snir 2011, equations 3 to 5)"
        ),
        _routing(
            "dimension-order",
            "tori and meshes: one axis after the other (Hoefler and Snir 2011, section 2.3)",
            "tori:build",
        ),
        _routing(
            "up-down", "all shortest paths that never turn up again (Orduña, Silla and Duato 2004, section 3)"
        ),
        _routing(
            "path-table",
            "the user's own paths and their probabilities (Hoefler and Snir 2011, section 2.1)",
            "routes:build",
        ),
        _routing(
            "least-loaded",
            "single shortest paths, least loaded first (Hoefler and Snir 2011, Algorithm 3)",
            "spread:build",
        ),
        _routing(
            "valiant",
            "over a random switch, a given share or all traffic (Valiant 1982); loads are exact",
            "spread:valiant",
        ),
        _routing(
            "ugal",
            "spread: minimal, except a given share over a random switch (Singh 2005, UGAL)",
            "spread:ugal",
        ),
        _routing(
            "ecmp",
            "each flow of a pair hashed onto one shortest path (RFC 2992)",
            "shortest_paths:build_ecmp",
        ),
    ),
    PlugIns(group="routings", entry=Entry),
)
"""All routings."""
DEFAULTS = ("tables", "shortest-paths")
"""The routings used by default; see `choose_routing`."""


@dataclass(frozen=True, slots=True)
class Routing(Choice[Entry]):
    """A routing and those of its options that differ from their defaults, in the order of its parameters."""

    @classmethod
    def parse(cls, text: str) -> Routing:
        """Read a routing written as ``name`` or ``name:option=value,option=value``."""
        name, given = split_options(text)
        entry = ROUTINGS.find(name)
        defaults = entry.options()
        defaults.pop("rails", None)
        found = read_options(name, given, defaults)
        chosen = ((key, found[key]) for key in defaults if key in found and found[key] != defaults[key])
        return cls(entry, tuple(chosen))

    def build(self, fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED) -> Routes:
        """Return routes between hosts (vertices); see `build_routes`."""
        routes: Routes = self.function()(fabric, hosts, rails=rails)
        routes.name = str(self)
        return routes


def build_routes(
    routing: str | Routing, fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED
) -> Routes:
    """Return routes between hosts (vertices) by a routing.

    Args:
        routing: As text, such as ``shortest-paths`` or ``up-down:root=6``.
        rails: How the bytes of a pair are split over adapters: ``all-connected`` or ``same-rail``.
    """
    chosen = Routing.parse(routing) if isinstance(routing, str) else content(routing, Routing, "routing")
    return chosen.build(fabric, hosts, rails=rails)


def choose_routing(fabric: Fabric) -> tuple[str, str]:
    """Return the default routing of a fabric, and the reason in a few words."""
    from mapping.routing import forwarding_tables

    if fabric.tables is None:
        return "shortest-paths", "the fabric has no forwarding tables"
    if forwarding_tables.complete(fabric):
        return "tables", "the fabric has complete forwarding tables"
    return "shortest-paths", "the fabric's forwarding tables do not connect all of its hosts"
