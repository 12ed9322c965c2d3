"""Generators of fabrics, profiles and weights by name: one line per generator.

``almanac generate`` makes its options from the parameters of a generator's function (or of the dataclass that
it takes): they are annotated as int, float, bool, str, a `Literal`, sequences or tuples of these, or one of
them or None; the docstring has a numpydoc section ``Parameters``.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from ingest.generate.signatures import REQUIRED, Parameter, dataclass_of, parameters_of
from registry.catalog import Catalog, Entry
from registry.errors import InvalidValue, UnknownName

__all__ = [
    "FABRICS",
    "GENERATORS",
    "PROFILES",
    "REQUIRED",
    "WEIGHTS",
    "Generator",
    "Parameter",
    "make",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator(Entry):
    """A generator; its name is an argument of ``almanac generate KIND``.

    Its function returns a `Fabric`, a `Profile`, an array of weights by rank, or the list of
    `ingest.formats.fabrics.infiniband.Device` of an InfiniBand scan.

    Attributes
    ----------
    kind : str
        ``fabric``, ``profile`` or ``weights``.
    """

    kind: str

    def parameters(self) -> tuple[Parameter, ...]:
        """The function's parameters in its order."""
        return parameters_of(self.load())

    def explained(self) -> str:
        """The function's docstring up to its sections."""
        text = inspect.getdoc(self.load()) or self.about
        return text.split("\nParameters\n----")[0].split("\nRaises\n----")[0].strip()


def _generator(kind: str, name: str, function: str, about: str) -> Generator:
    path = function if "." in function else f"ingest.generate.{function}"
    return Generator(name=name, kind=kind, target=path, about=about)


_fabric, _profile, _weights = (partial(_generator, kind) for kind in ("fabric", "profile", "weights"))

FABRICS = Catalog(
    "generator of fabric",
    (
        _fabric("torus", "tori:torus", "torus of any dimensions, sides and capacities"),
        _fabric("mesh", "tori:mesh", "a torus without the links that go around"),
        _fabric("hypercube", "tori:hypercube", "nodes whose numbers differ in one bit are linked"),
        _fabric("percs", "percs:percs", "IBM PERCS: fully connected supernodes of 32 nodes"),
        _fabric("k-ary-n-tree", "fat_trees:k_ary_n_tree", "k^n hosts below n levels of switches"),
        _fabric(
            "fat-tree",
            "fat_trees:extended_generalised_fat_tree",
            "extended generalised fat tree XGFT(h; m; w), any oversubscription",
        ),
        _fabric("three-level", "fat_trees:three_level", "three-level fat tree; 20,000 hosts by default"),
        _fabric("director-tree", "fat_trees:director_tree", "leaves below director-class switches"),
        _fabric("juropa-like", "fat_trees:juropa_like", "3,292 hosts, the 2011 paper's smaller fat tree"),
        _fabric("ranger-like", "fat_trees:ranger_like", "4,081 hosts, the 2011 paper's larger fat tree"),
        _fabric("dragonfly", "dragonfly:dragonfly", "dragonfly with any a, h, p, g"),
        _fabric("hyperx", "hyperx:hyperx", "switches on a grid, all of a line linked to each other"),
        _fabric("slim-fly", "slim_fly:slim_fly", "switches two cables apart at most, for a prime power q"),
        _fabric(
            "rail-pods",
            "pods:rail_pods",
            "AI pods: NVLink within domains, one rail per accelerator between them",
        ),
        _fabric("chordal-ring", "chordal_rings:chordal_ring", "a ring with chords, as in the 2013 paper"),
        _fabric("tianhe3", "tianhe3:tianhe3", "Tianhe-3: chips of two halves of 48 nodes"),
        _fabric("irregular", "irregular:irregular", "switches linked at random, as in the 2004 paper"),
        _fabric("autonet", "irregular:autonet", "the ten switches of the 2004 paper's Figure 3"),
        _fabric(
            "infiniband-fat-tree",
            "ingest.writers.infiniband:fat_tree",
            "two-level fat tree with ports, GUIDs, LIDs",
        ),
        _fabric(
            "infiniband-director-tree",
            "ingest.writers.infiniband:director_tree",
            "2,304 hosts below directors, with ports, GUIDs, LIDs",
        ),
    ),
)
"""Generators of fabrics."""

PROFILES = Catalog(
    "generator of profile",
    (
        _profile("nas-bt", "nas:bt", "NAS BT: block-tridiagonal solver"),
        _profile("nas-sp", "nas:sp", "NAS SP: penta-diagonal solver"),
        _profile("nas-cg", "nas:cg", "NAS CG: conjugate gradients"),
        _profile("nas-lu", "nas:lu", "NAS LU: successive over-relaxation"),
        _profile("nas-mg", "nas_multigrid:mg", "NAS MG: multigrid on a periodic cube"),
        _profile("nas-ft", "nas_collectives:ft", "NAS FT: Fourier transforms"),
        _profile("nas-is", "nas_collectives:integer_sort", "NAS IS: sorting of integers"),
        _profile("nas-ep", "nas_collectives:ep", "NAS EP: random numbers, a few reductions"),
        _profile("lulesh", "halos:lulesh", "LULESH 2: shock hydrodynamics on a cube of ranks"),
        _profile("hpcg", "halos:hpcg", "HPCG: conjugate gradients with multigrid"),
        _profile("sweep3d", "sweeps:sweep3d", "Sweep3D: wave fronts"),
        _profile("snap", "sweeps:snap", "SNAP: wave fronts"),
        _profile("stencil", "stencils:stencil", "5 to 27 points in two or three dimensions, periodic or not"),
        _profile("ring", "patterns:ring", "every rank to the next"),
        _profile("all-to-all", "patterns:all_to_all", "every rank to every other"),
        _profile("random", "patterns:random", "every rank to some others, drawn at random"),
        _profile(
            "stream", "streams:stream", "kernels of a stream computing application, as in the 2013 paper"
        ),
        _profile("collective", "patterns:collective", "one collective by a named algorithm"),
        _profile("kkt", "patterns:kkt_product", "matrix-vector products with nlpkkt80 to nlpkkt240"),
        _profile(
            "crankshaft", "patterns:crankshaft_product", "matrix-vector products like those with F1, audikw_1"
        ),
        _profile(
            "ai-layout", "ai_layouts:ai_layout", "a step of AI training from the sizes of its parallel groups"
        ),
    ),
)
"""Generators of profiles."""

WEIGHTS = Catalog(
    "generator of weights",
    (_weights("stream", "streams:stream_weights", "computation of the kernels of the profile stream"),),
)
"""Generators of the computation of ranks (float64[ranks]), which a profile does not contain."""

GENERATORS = MappingProxyType({"fabric": FABRICS, "profile": PROFILES, "weights": WEIGHTS})
"""The generators of each kind."""


def make(generator: Generator, values: Mapping[str, Any]) -> Any:
    """What the generator makes of these values, which may be text as on a command line.

    Parameters
    ----------
    generator : Generator
    values : mapping of str to object
        Values by the names of the parameters.

    Returns
    -------
    Fabric, Profile or list of Device

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
            raise UnknownName(f"parameter of {generator.name}", name, list(parameters))
        given[name] = parameters[name].read(value) if isinstance(value, str) else value
    for name, parameter in parameters.items():
        if parameter.default is REQUIRED and name not in given:
            raise InvalidValue(f"{generator.name}.{name}", "is required")
    function = generator.load()
    options = dataclass_of(function)
    return function(**given) if options is None else function(options(**given))
