"""Generators of fabrics, profiles and weights by name: one line per generator.

The function of a generator returns a `Fabric`, a `Profile`, the computation of each rank (float64[ranks]), or
the list of devices (`ingest.formats.fabrics.infiniband.Device`) of an InfiniBand scan. It raises
`InvalidValue` with the name of the parameter for a value outside its range. The same call always returns the
same bytes.

``almanac generate`` makes its options from the parameters of the function (or of the dataclass that it
takes). They are annotated as int, float, bool, str or a `Literal`, as sequences or tuples of these, as one of
each, or as None. The section ``Parameters`` of the docstring describes them, except `signatures.COMMON`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ingest.generate.signatures import REQUIRED, Parameter, dataclass_of, parameters_of
from registry.catalog import Catalog, Entry
from registry.errors import InvalidValue, UnknownName

__all__ = ["FABRICS", "GENERATORS", "PROFILES", "REQUIRED", "WEIGHTS", "Generator", "Parameter", "make"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator(Entry):
    """A generator; its name is an argument of ``almanac generate KIND``.

    Attributes
    ----------
    kind : str
        ``fabric``, ``profile`` or ``weights``.
    """

    kind: str

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters of the function in its order."""
        return parameters_of(self.load())

    def explained(self) -> str:
        """Return the docstring of the function without its sections."""
        text = inspect.getdoc(self.load()) or self.about
        return text.split("\nParameters\n----")[0].strip()


def _generators(kind: str, *rows: tuple[str, str, str]) -> Catalog[Generator]:
    """Return the generators of a kind from rows of name, module and function, and description."""
    entries = (
        Generator(
            name=name,
            kind=kind,
            target=target if "." in target else f"ingest.generate.{target}",
            about=about,
        )
        for name, target, about in rows
    )
    return Catalog(f"{kind} generator", entries)


FABRICS = _generators(
    "fabric",
    ("torus", "tori:torus", "torus of any dimensions, sides and capacities"),
    ("mesh", "tori:mesh", "a torus without wrap-around links"),
    ("hypercube", "tori:hypercube", "nodes whose numbers differ in one bit are linked"),
    ("percs", "percs:percs", "IBM PERCS: fully connected supernodes of 32 nodes"),
    ("k-ary-n-tree", "fat_trees:k_ary_n_tree", "k^n hosts below n levels of switches"),
    (
        "fat-tree",
        "fat_trees:extended_generalised_fat_tree",
        "extended generalised fat tree XGFT(h; m; w), any oversubscription",
    ),
    ("three-level", "fat_trees:three_level", "three-level fat tree; 20,000 hosts by default"),
    ("director-tree", "fat_trees:director_tree", "leaves below director-class switches"),
    ("juropa-like", "fat_trees:juropa_like", "3,292 hosts, the 2011 paper's smaller fat tree"),
    ("ranger-like", "fat_trees:ranger_like", "4,081 hosts, the 2011 paper's larger fat tree"),
    ("dragonfly", "dragonfly:dragonfly", "dragonfly with any a, h, p, g"),
    ("hyperx", "hyperx:hyperx", "switches on a grid, all of a line linked to each other"),
    ("slim-fly", "slim_fly:slim_fly", "switches at most two cables apart, for a prime power q"),
    ("rail-pods", "pods:rail_pods", "AI pods: NVLink within domains, one rail per accelerator between them"),
    ("chordal-ring", "tori:chordal_ring", "a ring with chords, as in the 2013 paper"),
    ("tianhe3", "tianhe3:tianhe3", "Tianhe-3: chips of two halves of 48 nodes"),
    ("irregular", "irregular:irregular", "switches linked at random, as in the 2004 paper"),
    ("autonet", "irregular:autonet", "the ten switches of the 2004 paper's Figure 3"),
    (
        "infiniband-fat-tree",
        "ingest.writers.infiniband:fat_tree",
        "two-level fat tree with ports, GUIDs, LIDs",
    ),
    (
        "infiniband-director-tree",
        "ingest.writers.infiniband:director_tree",
        "2,304 hosts below directors, with ports, GUIDs, LIDs",
    ),
)

PROFILES = _generators(
    "profile",
    ("nas-bt", "nas:bt", "NAS BT: block-tridiagonal solver"),
    ("nas-sp", "nas:sp", "NAS SP: penta-diagonal solver"),
    ("nas-cg", "nas:cg", "NAS CG: conjugate gradients"),
    ("nas-lu", "nas:lu", "NAS LU: successive over-relaxation"),
    ("nas-mg", "nas_multigrid:mg", "NAS MG: multigrid on a periodic cube"),
    ("nas-ft", "nas:ft", "NAS FT: Fourier transforms"),
    ("nas-is", "nas:integer_sort", "NAS IS: sorting of integers"),
    ("nas-ep", "nas:ep", "NAS EP: random numbers, a few reductions"),
    ("lulesh", "stencils:lulesh", "LULESH 2: shock hydrodynamics on a cube of ranks"),
    ("hpcg", "stencils:hpcg", "HPCG: conjugate gradients with multigrid"),
    ("sweep3d", "wave_fronts:sweep3d", "Sweep3D: wave fronts over x and y"),
    ("snap", "wave_fronts:snap", "SNAP: wave fronts over y and z, by energy group"),
    ("stencil", "stencils:stencil", "5 to 27 points in two or three dimensions, periodic or not"),
    ("ring", "patterns:ring", "every rank to the next"),
    ("all-to-all", "patterns:all_to_all", "every rank to every other"),
    ("random", "patterns:random", "every rank to some others, drawn at random"),
    ("stream", "streams:stream", "kernels of a stream computing application, as in the 2013 paper"),
    ("collective", "patterns:collective", "one collective by a named algorithm"),
    ("kkt", "patterns:kkt_product", "matrix-vector products with nlpkkt80 to nlpkkt240"),
    (
        "crankshaft",
        "patterns:crankshaft_product",
        "matrix-vector products like those with F1, audikw_1",
    ),
    ("ai-layout", "ai_layouts:ai_layout", "a step of AI training from the sizes of its parallel groups"),
)

WEIGHTS = _generators(
    "weights",
    ("stream", "streams:stream_weights", "computation of the kernels of the profile stream"),
)

GENERATORS = MappingProxyType({"fabric": FABRICS, "profile": PROFILES, "weights": WEIGHTS})
"""The generators of each kind."""


def make(generator: Generator, values: Mapping[str, Any]) -> Any:
    """Return what the generator makes of values by parameter, which may be text as on a command line.

    Raises
    ------
    InvalidValue
        A value is invalid, or a required parameter is missing.
    UnknownName
        The generator has no parameter of that name.
    """
    parameters = {parameter.name: parameter for parameter in generator.parameters()}
    given: dict[str, Any] = {}
    for name, value in values.items():
        if name not in parameters:
            raise UnknownName(f"{generator.name} parameter", name, list(parameters))
        given[name] = parameters[name].read(value) if isinstance(value, str) else value
    for name, parameter in parameters.items():
        if parameter.default is REQUIRED and name not in given:
            raise InvalidValue(f"{generator.name}.{name}", "is required")
    function = generator.load()
    options = dataclass_of(function)
    return function(**given) if options is None else function(options(**given))
