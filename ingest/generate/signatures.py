"""Parameters of a generator, read from the signature and docstring of its function.

A function with many parameters takes one frozen dataclass instead: its fields are then the parameters.
"""

from __future__ import annotations

import inspect
import math
import re
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from registry.errors import InvalidValue

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
_ENTRY = re.compile(r"^(\w+(?:, \w+)*+)(?: :.*)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a generator.

    Attributes
    ----------
    type : str
        Form of a value: ``number``, ``whole number``, ``yes or no``, ``text``, ``a|b``, or ``... ,...`` for
        several.
    default : object
        Default value, or `REQUIRED`.
    about : str
        Description in one sentence; may be empty.
    """

    name: str
    type: str
    default: Any
    about: str
    annotation: Any

    def read(self, text: str) -> Any:
        """Return the value of a text such as ``64``, ``4x4x4``, ``1,2.5`` or ``yes``."""
        return _read(self.name, self.annotation, text.strip())


def parameters_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Return the parameters of a function in its order; those of its dataclass, if it takes one.

    Raises
    ------
    TypeError
        An annotation is not supported, which is an error of the catalog.
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
    """Return the first sentence about each parameter in the ``Parameters`` of a numpydoc docstring."""
    _, found, section = text.partition("Parameters\n----------\n")
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines() if found else ():
        if line.startswith("---"):
            break
        entry = _ENTRY.match(line)
        if entry:
            names = entry[1].split(", ")
        elif line.startswith("    "):
            for name in names:
                texts[name] = f"{texts.get(name, '')} {line.strip()}".strip()
    return {name: _SENTENCE_END.split(about)[0].rstrip(".") for name, about in texts.items()}
