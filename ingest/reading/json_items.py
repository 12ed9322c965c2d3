"""Reading of one long list in a JSON document item by item, such as a year of accounting.

Content that `ingest.reading.json_text` rejects is rejected here, too, except long whole numbers, to which
Python's own limit of some thousand digits applies. Memory holds one item and a piece of the file.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from ingest.reading.json_text import Refused, encodable, strict_decoder
from ingest.reading.source import SourceFile
from registry.errors import InputError

CHUNK = 1 << 20
"""Number of bytes decoded at a time."""
MAX_VALUE = 1 << 28
"""Largest item or value of another key, in characters."""
_BEHIND = frozenset(" \t\r\n,:]}")
"""Characters that may follow a value."""
_BLANK = re.compile(r"[ \t\r\n]*")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def items(file: SourceFile, key: str) -> Iterator[Any]:
    """Yield the items of the list under a key of the document, which must be an object.

    Parameters
    ----------
    file : SourceFile
        File to read; large ones are read piece by piece.
    key : str
        Key of the list; the values of other keys are read and dropped.

    Raises
    ------
    InputError
        Invalid or truncated JSON, no such list, a repeated key, a value of more than `MAX_VALUE` characters,
        or content that `ingest.reading.json_text.load_json` rejects. The items before it have been yielded.
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
                    if _SURROGATE.search(self._text, self._index, end) and not encodable(value):
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
