"""Generators of fabrics, profiles and weights by name: one line per generator.

The function of a generator returns a `Fabric`, a `Profile`, the computation of each rank (float64[ranks]), or
the list of devices (`ingest.formats.fabrics.infiniband.Device`) of an InfiniBand scan. It raises
`InvalidValue` with the name of the parameter for a value outside its range. The same call always returns the
same bytes.

``almanac generate`` makes its options from the parameters of the function (or of the dataclass that it
takes). They are annotated as int, float, bool, str or a `Literal`, as sequences or tuples of these, as one of
each, or as None. The section ``Args`` of the docstring describes them, except `COMMON`. A function with
many parameters takes one frozen dataclass instead: its fields are then the parameters.
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from registry.catalog import Catalog, Entry
from registry.errors import InvalidValue, UnknownName

REQUIRED: Final = inspect.Parameter.empty
"""Default of a required parameter."""
COMMON = {
    "ranks": "Number of ranks",
    "slots": "Number of ranks per host",
    "capacity": "Bytes/s in each direction of a cable",
    "seed": "Seed of the random numbers",
    "steps": "Number of time steps",
    "iterations": "Number of iterations",
    "width": "Number of lanes of a cable",
    "speed": "Speed of an InfiniBand cable, such as HDR",
}
"""Descriptions of parameters that many generators have."""
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_COMMA_OR_X, _COMMA = re.compile(r"[,x]"), re.compile(",")
_SENTENCE_END = re.compile(r"\.\s+(?=[A-Z])")
_ENTRY = re.compile(r" {4}(\w+(?:, \w+)*+)(?: \([^)]*+\))?+:(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a generator."""

    name: str
    type: str
    """Form of a value: ``number``, ``whole number``, ``yes or no``, ``text``, ``a|b``, or ``... ,...`` for
    several."""
    default: Any
    """Default value, or `REQUIRED`."""
    about: str
    """Description in one sentence; may be empty."""
    annotation: Any

    def read(self, text: str) -> Any:
        """Return the value of a text such as ``64``, ``4x4x4``, ``1,2.5`` or ``yes``."""
        return _read(self.name, self.annotation, text.strip())


def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return the parameters of a function in its order; those of its dataclass, if it takes one.

    Raises:
        TypeError: An annotation is not supported, which is an error of the catalog.
    """
    source = dataclass_of(function) or function
    hints = get_type_hints(source)
    texts = COMMON | _described(inspect.getdoc(source) or "")
    return tuple(
        Parameter(
            name=name,
            type=_label(hints[name]),
            default=known.default,
            about=texts.get(name, ""),
            annotation=hints[name],
        )
        for name, known in inspect.signature(source).parameters.items()
    )


def dataclass_of(function: Callable[..., Any]) -> type | None:
    """Return the dataclass that a function takes as its only parameter; None if it takes something else."""
    names = list(inspect.signature(function).parameters)
    hint = get_type_hints(function)[names[0]] if len(names) == 1 else None
    return hint if isinstance(hint, type) and is_dataclass(hint) else None


def _choices(annotation: Any) -> tuple[Any, ...]:
    """Return the allowed types except None: one value, a sequence, or either."""
    if get_origin(annotation) in (types.UnionType, Union):
        return tuple(part for part in get_args(annotation) if part is not type(None))
    return (annotation,)


def _is_sequence(annotation: Any) -> bool:
    return get_origin(annotation) in (tuple, list, Sequence)


def _label(annotation: Any) -> str:
    words = {int: "whole number", float: "number", bool: "yes or no", str: "text"}
    labels = []
    for part in _choices(annotation):
        if _is_sequence(part):
            labels.append(f"{_label(get_args(part)[0])},...")
        elif get_origin(part) is Literal:
            labels.append("|".join(map(str, get_args(part))))
        elif part in words:
            labels.append(words[part])
        else:
            raise TypeError(f"a generator's parameter cannot be {part!r}")
    return " or ".join(dict.fromkeys(labels))


def _read(name: str, annotation: Any, text: str) -> Any:
    parts = _choices(annotation)
    several = next((part for part in parts if _is_sequence(part)), None)
    single = next((part for part in parts if not _is_sequence(part)), None)
    if several is not None and (single is None or _delimiter(several).search(text)):
        return _read_several(name, several, text)
    return _read_one(name, single, text)


def _read_several(name: str, annotation: Any, text: str) -> tuple[Any, ...]:
    wanted = get_args(annotation)
    parts = _delimiter(annotation).split(text)
    items = tuple(_read_one(name, wanted[0], part.strip()) for part in parts)
    if get_origin(annotation) is tuple and Ellipsis not in wanted and len(items) != len(wanted):
        raise InvalidValue(name, f"needs {len(wanted)} values separated by commas, not {len(items)}")
    return items


def _delimiter(annotation: Any) -> re.Pattern[str]:
    """Return the delimiter of several values: a comma, or for numbers also the x of ``4x4``."""
    return _COMMA_OR_X if get_args(annotation)[0] in (int, float) else _COMMA


def _read_one(name: str, annotation: Any, text: str) -> Any:
    """Return the value of a text that is not a sequence."""
    if get_origin(annotation) is Literal:
        known = {str(value): value for value in get_args(annotation)}
        if text not in known:
            raise InvalidValue(name, f"is {text!r}, must be one of {', '.join(known)}")
        return known[text]
    if annotation is bool:
        if text.lower() not in _YES + _NO:
            raise InvalidValue(name, f"is {text!r}, must be yes or no")
        return text.lower() in _YES
    if annotation is str:
        return text
    try:
        value = annotation(text)
    except ValueError:
        wanted = "whole number" if annotation is int else "number"
        raise InvalidValue(name, f"is {text!r}, not a {wanted}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidValue(name, "must be finite")
    return value


def _described(text: str) -> dict[str, str]:
    """Return the first sentence about each parameter in the section ``Args`` of a docstring."""
    _, _, section = text.partition("\nArgs:\n")
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in itertools.takewhile(lambda line: not line or line.startswith("    "), section.splitlines()):
        entry = _ENTRY.fullmatch(line)
        names, line = (entry[1].split(", "), entry[2]) if entry else (names, line)
        for name in names:
            texts[name] = f"{texts.get(name, '')} {line.strip()}".strip()
    return {name: _SENTENCE_END.split(about)[0].rstrip(".") for name, about in texts.items()}


__all__ = ["FABRICS", "GENERATORS", "PROFILES", "REQUIRED", "WEIGHTS", "Generator", "Parameter", "make"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator(Entry):
    """A generator; its name is an argument of ``almanac generate KIND``."""

    kind: str
    """``fabric``, ``profile`` or ``weights``."""

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters of the function in its order."""
        return parameters_of(self.load())

    def explained(self) -> str:
        """Return the docstring of the function without its sections."""
        text = inspect.getdoc(self.load()) or self.about
        return text.split("\nArgs:\n")[0].strip()


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
    ("torus", "direct:torus", "torus of any dimensions, sides and capacities"),
    ("mesh", "direct:mesh", "a torus without wrap-around links"),
    ("hypercube", "direct:hypercube", "nodes whose numbers differ in one bit are linked"),
    ("percs", "direct:percs", "IBM PERCS: fully connected supernodes of 32 nodes"),
    ("k-ary-n-tree", "trees:k_ary_n_tree", "k^n hosts below n levels of switches"),
    (
        "fat-tree",
        "trees:extended_generalised_fat_tree",
        "extended generalised fat tree XGFT(h; m; w), any oversubscription",
    ),
    ("three-level", "trees:three_level", "three-level fat tree; 20,000 hosts by default"),
    ("director-tree", "trees:director_tree", "leaves below director-class switches"),
    ("juropa-like", "trees:juropa_like", "3,292 hosts, the 2011 paper's smaller fat tree"),
    ("ranger-like", "trees:ranger_like", "4,081 hosts, the 2011 paper's larger fat tree"),
    ("dragonfly", "direct:dragonfly", "dragonfly with any a, h, p, g"),
    ("hyperx", "direct:hyperx", "switches on a grid, all of a line linked to each other"),
    ("slim-fly", "direct:slim_fly", "switches at most two cables apart, for a prime power q"),
    ("rail-pods", "trees:rail_pods", "AI pods: NVLink within domains, one rail per accelerator between them"),
    ("chordal-ring", "direct:chordal_ring", "a ring with chords, as in the 2013 paper"),
    ("tianhe3", "trees:tianhe3", "Tianhe-3: chips of two halves of 48 nodes"),
    ("irregular", "direct:irregular", "switches linked at random, as in the 2004 paper"),
    ("autonet", "direct:autonet", "the ten switches of the 2004 paper's Figure 3"),
    ("infiniband-fat-tree", "ingest.writers:fat_tree", "two-level fat tree with ports, GUIDs, LIDs"),
    (
        "infiniband-director-tree",
        "ingest.writers:director_tree",
        "2,304 hosts below directors, with ports, GUIDs, LIDs",
    ),
)

PROFILES = _generators(
    "profile",
    ("nas-bt", "nas:bt", "NAS BT: block-tridiagonal solver"),
    ("nas-sp", "nas:sp", "NAS SP: penta-diagonal solver"),
    ("nas-cg", "nas:cg", "NAS CG: conjugate gradients"),
    ("nas-lu", "nas:lu", "NAS LU: successive over-relaxation"),
    ("nas-mg", "nas:mg", "NAS MG: multigrid on a periodic cube"),
    ("nas-ft", "nas:ft", "NAS FT: Fourier transforms"),
    ("nas-is", "nas:integer_sort", "NAS IS: sorting of integers"),
    ("nas-ep", "nas:ep", "NAS EP: random numbers, a few reductions"),
    ("lulesh", "stencils:lulesh", "LULESH 2: shock hydrodynamics on a cube of ranks"),
    ("hpcg", "stencils:hpcg", "HPCG: conjugate gradients with multigrid"),
    ("sweep3d", "stencils:sweep3d", "Sweep3D: wave fronts over x and y"),
    ("snap", "stencils:snap", "SNAP: wave fronts over y and z, by energy group"),
    ("stencil", "stencils:stencil", "5 to 27 points in two or three dimensions, periodic or not"),
    ("ring", "collectives:ring", "every rank to the next"),
    ("all-to-all", "collectives:all_to_all", "every rank to every other"),
    ("random", "collectives:random", "every rank to some others, drawn at random"),
    ("stream", "streams:stream", "kernels of a stream computing application, as in the 2013 paper"),
    ("collective", "collectives:collective", "one collective by a named algorithm"),
    ("kkt", "collectives:kkt_product", "matrix-vector products with nlpkkt80 to nlpkkt240"),
    ("crankshaft", "collectives:crankshaft_product", "matrix-vector products like those with F1, audikw_1"),
    ("ai-layout", "collectives:ai_layout", "a step of AI training from the sizes of its parallel groups"),
)

WEIGHTS = _generators(
    "weights",
    ("stream", "streams:stream_weights", "computation of the kernels of the profile stream"),
)

GENERATORS = MappingProxyType({"fabric": FABRICS, "profile": PROFILES, "weights": WEIGHTS})
"""The generators of each kind."""


def make(generator: Generator, values: Mapping[str, Any]) -> Any:
    """Return what the generator makes of values by parameter, which may be text as on a command line.

    Raises:
        InvalidValue: A value is invalid, or a required parameter is missing.
        UnknownName: The generator has no parameter of that name.
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
