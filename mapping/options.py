"""Options of a strategy, refiner or routing in a text: ``name:key=value,key=value``.

What options there are, and of which type, is read from the function: its keyword-only parameters with a
default that is a whole number, a number, a text or a truth value.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from registry.errors import InvalidValue, UnknownName

Value = int | float | str | bool
TRUTH: Mapping[str, bool] = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def split_options(text: str) -> tuple[str, dict[str, str]]:
    """Name and options, still as text, of ``name:key=value,key=value``.

    Raises
    ------
    InvalidValue
        An option without ``=``, or one that stands twice.
    """
    name, colon, rest = text.partition(":")
    found: dict[str, str] = {}
    for item in rest.split(",") if colon else ():
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise InvalidValue(name, f"{item!r} is not KEY=VALUE")
        if key in found:
            raise InvalidValue(f"{name}.{key}", "stands twice")
        found[key] = value
    return name, found


def options_of(function: Callable[..., Any]) -> dict[str, Value]:
    """Options that a function has, and their defaults."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and isinstance(parameter.default, Value)
    }


def read_options(name: str, given: Mapping[str, str], known: Mapping[str, Value]) -> dict[str, Value]:
    """The options as values of the types of the known ones' defaults.

    Parameters
    ----------
    name : str
        Whose options they are, for errors.
    known : mapping of str to int, float, str or bool
        Options and their defaults.

    Raises
    ------
    UnknownName
        An option that there is not; with the closest.
    InvalidValue
        A value that is not of the option's type.
    """
    found = {}
    for key, text in given.items():
        if key not in known:
            there_are = f"{name} has {', '.join(known)}" if known else f"{name} has none"
            raise UnknownName("option", key, known, remedy=there_are)
        found[key] = _value(f"{name}.{key}", text, type(known[key]))
    return found


def _value(field: str, text: str, kind: type[Value]) -> Value:
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
