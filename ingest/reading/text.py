"""Reading of JSON, XML and YAML within limits; invalid content raises `InputError`.

Content that JSON allows but no tool intends is rejected: repeated keys (readers differ in which value wins),
``NaN`` and ``Infinity``, numbers too large for a float, halves of surrogate pairs (text that UTF-8 cannot
encode), and nesting that exhausts the stack.

`items` reads one long list in a document item by item, such as a year of accounting: memory holds one item
and a piece of the file. Only for long whole numbers Python's own limit of some thousand digits applies there.

XML has no document types, entities and other files. YAML turns ``no`` into false, ``0010`` into eight and
``12:30`` into a number of base 60, which would damage the names of hosts; so scalars are not interpreted, and
an empty one is ``""``. Anchors, aliases and tags are rejected, since a few lines of aliases can expand to
more values than fit in memory. The document is built from the events of the library's parser, without
recursion.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn
from xml.etree.ElementTree import Element, ParseError

import numpy as np
import yaml
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from ingest.reading.source import MAX_BYTES, Place, SourceFile
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

    Args:
        file: File to read.
        limit: Largest number of bytes; objects in memory are about ten times as large as their text.

    Returns:
        Floats are finite; no text contains half a surrogate pair.

    Raises:
        InputError: Invalid or truncated JSON, larger than the limit, deeper than `MAX_DEPTH`, a repeated key
            in one object, ``NaN`` or ``Infinity``, a number of more than `MAX_DIGITS` characters or too large
            for a float.
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

    Args:
        long_whole: True to accept whole numbers of more than `MAX_DIGITS`, up to Python's own limit, where
            ``int`` raises `ValueError`. This is a third faster for documents that are mostly numbers.
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


CHUNK = 1 << 20
"""Number of bytes decoded at a time."""
MAX_VALUE = 1 << 28
"""Largest item or value of another key, in characters."""
_BEHIND = frozenset(" \t\r\n,:]}")
"""Characters that may follow a value."""
_BLANK = re.compile(r"[ \t\r\n]*")
_SURROGATES = re.compile(r"\\u[dD][89a-fA-F]")


def items(file: SourceFile, key: str) -> Iterator[Any]:
    """Yield the items of the list under a key of the document, which must be an object.

    Args:
        file: File to read; large ones are read piece by piece.
        key: Key of the list; the values of other keys are read and dropped.

    Raises:
        InputError: Invalid or truncated JSON, no such list, a repeated key, a value of more than `MAX_VALUE`
            characters, or content that `ingest.reading.text.load_json` rejects. The items before it have been
            yielded.
    """
    text = _Text(file)
    text.take("{", f"no list under the key {key}")
    seen: set[str] = set()
    while text.peek() != "}" or seen:
        name = text.value()
        if not isinstance(name, str):
            raise text.error("a key is not text")
        if name in seen:
            raise text.error(f"the key {name} is repeated")
        seen.add(name)
        text.take(":", "invalid or truncated JSON: no ':' after a key")
        if name == key:
            yield from _list(text, key)
        else:
            text.value()
        if text.peek() == "}":
            break
        text.take(",", "invalid or truncated JSON: no ',' between two keys")
    text.take("}", "invalid or truncated JSON: no '}' at the end")
    if text.peek():
        raise text.error("more than one JSON value")
    if key not in seen:
        raise InputError(f"no list under the key {key}", path=file.path)


def _list(text: _Text, key: str) -> Iterator[Any]:
    text.take("[", f"no list under the key {key}")
    if text.peek() != "]":
        yield text.value()
        while text.peek() == ",":
            text.take(",", "")
            yield text.value()
    text.take("]", f"invalid or truncated JSON: no ']' after the list {key}")


class _Text:
    """The decoded but not yet consumed text of a file."""

    def __init__(self, file: SourceFile) -> None:
        self._path = file.path
        self._decoder = strict_decoder(long_whole=True)
        self._chunks = _chunks(file)
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._ended = False
        self._text = ""
        self._index = 0
        self._lines = 1

    def peek(self) -> str:
        """Return the next character except blanks; empty at the end."""
        while True:
            found = _BLANK.match(self._text, self._index)
            self._index = found.end() if found else self._index
            if self._index < len(self._text) or not self._more(CHUNK):
                return self._text[self._index : self._index + 1]

    def take(self, character: str, reason: str) -> None:
        """Consume a character; raise an error with the reason if another one is next."""
        if self.peek() != character:
            raise self.error(reason)
        self._index += 1

    def value(self) -> Any:
        """Return the next value."""
        self.peek()
        size = CHUNK
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._index)
            except json.JSONDecodeError as error:
                if not self._more(size):
                    raise self.error(f"invalid or truncated JSON: {error.msg}", error.pos) from error
            except Refused as error:
                raise self.error(error.reason) from None
            except (ValueError, RecursionError) as error:
                raise self.error(f"unreadable JSON: {error}") from error
            else:
                # A number at the end of the decoded text may continue, as in "1", "1." or "1e".
                if self._text[end : end + 1] in _BEHIND or not self._more(size):
                    if _SURROGATES.search(self._text, self._index, end) and not encodable(value):
                        raise self.error("text with half a surrogate pair, which is not a character")
                    self._index = end
                    return value
            if len(self._text) > MAX_VALUE:
                raise self.error(f"a value of more than {MAX_VALUE} characters")
            size *= 2

    def error(self, reason: str, index: int | None = None) -> InputError:
        """Return an error at a character of the text (default: the next one)."""
        index = self._index if index is None else index
        line = self._lines + self._text.count("\n", 0, index)
        start = self._text.rfind("\n", 0, index) + 1
        shown = self._text[max(start, index - 100) : index + 100].split("\n")[0]
        return InputError(reason, path=self._path, line=line, text=shown)

    def _more(self, size: int) -> bool:
        """Decode at least `size` more bytes and drop consumed text; return False at the end of the file."""
        parts: list[str] = []
        while not self._ended and (size > 0 or not any(parts)):
            chunk = next(self._chunks, b"")
            self._ended = not chunk
            size -= len(chunk)
            try:
                parts.append(self._utf8.decode(chunk, self._ended))
            except UnicodeDecodeError as error:
                reason = f"byte 0x{error.object[error.start]:02x} is not UTF-8 text"
                raise self._undecodable(reason, parts, error.object, error.start) from error
            if b"\0" in chunk:
                raise self._undecodable("the file is binary, not text", parts[:-1], chunk, chunk.find(b"\0"))
        decoded = "".join(parts)
        if not decoded:
            return False
        self._lines += self._text.count("\n", 0, self._index)
        self._text = self._text[self._index :] + decoded
        self._index = 0
        return True

    def _undecodable(self, reason: str, parts: list[str], chunk: bytes, index: int) -> InputError:
        """Return an error at a byte of a chunk that follows the text and some parts."""
        line = self._lines + self._text.count("\n") + chunk.count(b"\n", 0, index)
        line += sum(part.count("\n") for part in parts)
        shown = chunk[max(chunk.rfind(b"\n", 0, index) + 1, index - 100) : index + 100].split(b"\n")[0]
        return InputError(reason, path=self._path, line=line, text=shown.decode("utf-8", "backslashreplace"))


def _chunks(file: SourceFile) -> Iterator[bytes]:
    """Yield the content in pieces of at most `CHUNK` bytes, none of them empty."""
    for piece in file.pieces():
        for start in range(0, len(piece), CHUNK):
            yield piece[start : start + CHUNK]


def load_xml(file: SourceFile) -> Element:
    """Return the outermost element of a file.

    Raises:
        InputError: Invalid or truncated XML, another encoding than the text has, a document type or entities.
    """
    file.text()
    try:
        root: Element = fromstring(file.data, forbid_dtd=True)
    except ParseError as error:
        reason = f"invalid or truncated XML: {error}"
        raise InputError(reason, path=file.path, line=error.position[0]) from error
    except DefusedXmlException as error:
        raise InputError("document types and entities are not allowed", path=file.path) from error
    except (ValueError, LookupError) as error:
        raise InputError(f"unreadable XML: {error}", path=file.path) from error
    return root


MAX_YAML_BYTES = 1 << 25
"""Largest document, 32 MiB."""

_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def load_yaml(file: SourceFile, *, limit: int = MAX_YAML_BYTES) -> Any:
    """Return the YAML document of a file.

    Args:
        file: File to read.
        limit: Largest number of bytes.

    Returns:
        The document; keys are text. `ingest.reading.text.Spot` gives typed access.

    Raises:
        InputError: Invalid YAML, truncated within brackets or quotes, larger than the limit, deeper than
            `ingest.reading.text.MAX_DEPTH`, a repeated key in one mapping or one that is no scalar, an
            anchor, an alias, a tag, no document or several.
    """
    if len(file.data) > limit:
        raise InputError(f"more than {limit} bytes of YAML", path=file.path)
    builder = _Builder(file.path)
    text = file.text()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = f"invalid or truncated YAML: {error.problem or error.context}"
        line = min(mark.line, text.rstrip("\n").count("\n")) + 1 if mark else None
        raise InputError(reason, path=file.path, line=line) from error
    except (yaml.YAMLError, ValueError) as error:
        reason = str(error).split("\n", 1)[0]
        raise InputError(f"invalid YAML: {reason}", path=file.path) from error
    if builder.documents != 1:
        raise InputError(f"{builder.documents} YAML documents, not one", path=file.path)
    return builder.value


class _Builder:
    """The document built from the events so far."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.value: Any = ""
        self.documents = 0
        self._open: list[list[Any] | dict[str, Any]] = []
        self._keys: list[str | None] = []

    def take(self, event: yaml.Event) -> None:
        """Add one event of the parser to the document."""
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
        elif isinstance(event, yaml.AliasEvent):
            raise self._error("aliases are not allowed", event)
        elif isinstance(event, yaml.ScalarEvent):
            self._check(event)
            self._put(event.value, event)
        elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            self._check(event)
            inside: list[Any] | dict[str, Any] = [] if isinstance(event, yaml.SequenceStartEvent) else {}
            self._put(inside, event)
            self._open.append(inside)
            self._keys.append(None)
            if len(self._open) > MAX_DEPTH:
                raise self._error(f"nested deeper than {MAX_DEPTH}", event)
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            self._open.pop()
            self._keys.pop()

    def _put(self, value: Any, event: yaml.Event) -> None:
        """Put a value into the innermost open list or object."""
        if not self._open:
            self.value = value
            return
        above = self._open[-1]
        if isinstance(above, list):
            above.append(value)
        elif (key := self._keys[-1]) is not None:
            above[key] = value
            self._keys[-1] = None
        elif not isinstance(value, str):
            raise self._error("a key is not text", event)
        elif value in above:
            raise self._error(f"the key {value!r} is repeated", event)
        else:
            self._keys[-1] = value

    def _check(self, event: Any) -> None:
        if event.anchor is not None or event.tag not in (None, "!"):
            raise self._error("anchors and tags are not allowed", event)

    def _error(self, reason: str, event: yaml.Event) -> InputError:
        return InputError(
            reason, path=self.path, line=event.start_mark.line + 1 if event.start_mark else None
        )
