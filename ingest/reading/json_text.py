"""Reading of JSON within limits, with typed access to its values; invalid content raises `InputError`.

Content that JSON allows but no tool intends is rejected: repeated keys (readers differ in which value wins),
``NaN`` and ``Infinity``, numbers too large for a float, halves of surrogate pairs (text that UTF-8 cannot
encode), and nesting that exhausts the stack.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ingest.reading.compression import MAX_BYTES
from ingest.reading.source import Place, SourceFile
from registry.errors import InputError

MAX_DEPTH = 200
"""Largest depth of nested lists and objects."""
MAX_DIGITS = 400
"""Largest length of a number, in characters."""

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*+"', re.DOTALL)
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Escape of half a surrogate pair; whole pairs match, too."""


class Spot(NamedTuple):
    """A location in a document, for errors: the file's path and the value's, as in ``nodes[3].name``."""

    path: str
    way: str = ""

    def at(self, step: str | int) -> Spot:
        """Return the location of a member or an item."""
        if isinstance(step, int):
            return Spot(self.path, f"{self.way}[{step}]")
        return Spot(self.path, f"{self.way}.{step}" if self.way else step)

    @property
    def place(self) -> Place:
        """Location in the file, for errors."""
        return Place(self.path, text=self.way)

    def error(self, reason: str, text: object = None) -> InputError:
        """Return an `InputError` that names the location."""
        where = f"{self.way}: " if self.way else ""
        shown = self.way if text is None else str(text)
        return InputError(f"{where}{reason}", path=self.path, text=shown or None)

    def object(self, value: Any) -> dict[str, Any]:
        """Return the value; raise `InputError` if it is not an object."""
        if not isinstance(value, dict):
            raise self.error("is not an object", _short(value))
        return value

    def list(self, value: Any) -> list[Any]:
        """Return the value; raise `InputError` if it is not a list."""
        if not isinstance(value, list):
            raise self.error("is not a list", _short(value))
        return value

    def items(self, value: Any) -> Iterator[tuple[Spot, Any]]:
        """Yield the location and value of each item of a list."""
        for index, item in enumerate(self.list(value)):
            yield self.at(index), item

    def objects(self, value: Any) -> Iterator[tuple[Spot, dict[str, Any]]]:
        """Yield the location and content of each object of a list."""
        for spot, item in self.items(value):
            yield spot, spot.object(item)

    def text(self, value: Any) -> str:
        """Return the value; raise `InputError` if it is not text."""
        if not isinstance(value, str):
            raise self.error("is not text", _short(value))
        return value

    def whole(self, value: Any, low: int, high: int) -> int:
        """Return a whole number (or its decimal digits as text) from `low` to `high`."""
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,20}", value, re.ASCII):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.error(f"is not a whole number from {low} to {high}", _short(value))
        return value


def load_json(file: SourceFile, *, limit: int = MAX_BYTES) -> Any:
    """Return the JSON value of a file.

    Parameters
    ----------
    file : SourceFile
        File to read.
    limit : int
        Largest number of bytes; objects in memory are about ten times as large as their text.

    Returns
    -------
    None, bool, int, float, str, list or dict
        Floats are finite; no text contains half a surrogate pair.

    Raises
    ------
    InputError
        Invalid or truncated JSON, larger than the limit, deeper than `MAX_DEPTH`, a repeated key in one
        object, ``NaN`` or ``Infinity``, a number of more than `MAX_DIGITS` characters or too large for a
        float.
    """
    if len(file.data) > limit:
        raise InputError(f"more than {limit} bytes of JSON", path=file.path)
    text = file.text()
    if _depth(file.data) > MAX_DEPTH:
        raise InputError(f"lists and objects are nested deeper than {MAX_DEPTH}", path=file.path)
    try:
        value = strict_decoder().decode(text)
    except json.JSONDecodeError as error:
        reason = f"invalid or truncated JSON: {error.msg}"
        shown = text.split("\n", error.lineno)[error.lineno - 1]
        raise InputError(reason, path=file.path, line=error.lineno, text=shown) from error
    except Refused as error:
        line = _line(text, error.shown)
        raise InputError(error.reason, path=file.path, line=line, text=error.shown) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"unreadable JSON: {error}", path=file.path) from error
    if _SURROGATE.search(file.data) and not encodable(value):
        raise InputError("text with half a surrogate pair, which is not a character", path=file.path)
    return value


def strict_decoder(*, long_whole: bool = False) -> json.JSONDecoder:
    """Return a decoder that raises `Refused` for what JSON allows and no tool means.

    Parameters
    ----------
    long_whole : bool
        True to accept whole numbers of more than `MAX_DIGITS`, up to Python's own limit, where ``int`` raises
        `ValueError`. This is a third faster for documents that are mostly numbers.
    """
    return json.JSONDecoder(
        object_pairs_hook=_unique,
        parse_constant=_refuse,
        parse_float=_finite,
        parse_int=None if long_whole else _whole,
    )


class Refused(Exception):
    """Content rejected by a hook of the decoder, which does not know its location."""

    def __init__(self, reason: str, shown: str) -> None:
        self.reason = reason
        self.shown = shown
        super().__init__(reason)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise Refused("an object repeats this key", f'"{key}"')
            seen.add(key)
    return found


def _refuse(constant: str) -> NoReturn:
    raise Refused("is not a JSON number", constant)


def _finite(digits: str) -> float:
    value = float(digits) if len(digits) <= MAX_DIGITS else math.inf
    if not math.isfinite(value):
        raise Refused("the number is too large", digits)
    return value


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise Refused("the number is too large", digits)
    return int(digits)


def _depth(data: bytes) -> int:
    """Return the depth of nesting; brackets in strings are removed only if they could matter."""
    depth = _deepest(data)
    return depth if depth <= MAX_DEPTH else _deepest(_STRING.sub(b"", data))


def _deepest(data: bytes) -> int:
    brackets = np.frombuffer(data.translate(None, _NOT_BRACKETS), np.uint8)
    # [ and { are 0x5b and 0x7b, ] and } are 0x5d and 0x7d.
    steps = np.where(brackets & 2, 1, -1)
    return int(np.cumsum(steps).max(initial=0))


def encodable(value: Any) -> bool:
    """Return True if UTF-8 can encode all text of a value."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str) and not one.isascii():
            try:
                one.encode()
            except UnicodeEncodeError:
                return False
    return True


def _line(text: str, shown: str) -> int | None:
    """Return the line of a piece of text; None unless it occurs exactly once."""
    index = text.find(shown)
    if index < 0 or text.find(shown, index + 1) >= 0:
        return None
    return text.count("\n", 0, index) + 1


def _short(value: Any) -> str:
    """Return the quotation of a value of the wrong type."""
    return repr(value) if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__
