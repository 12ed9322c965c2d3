"""The items of one long list in a JSON document, one at a time: accounting of a year in bounded memory.

What `ingest.reading.json_text` refuses is refused here too, but for the length of whole numbers: Python's
own limit of some thousand digits holds. Only one item is in memory at a time, beside a piece of the file.
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
"""Bytes that are decoded at a time."""
MAX_VALUE = 1 << 28
"""Longest text of one item, or of what stands under another key, in characters."""
_BEHIND = frozenset(" \t\r\n,:]}")
"""Characters that may stand right behind a value."""
_BLANK = re.compile(r"[ \t\r\n]*")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def items(file: SourceFile, key: str) -> Iterator[Any]:
    """The items of the list under a key of the document, which must be an object.

    Parameters
    ----------
    file : SourceFile
        A large one is read piece by piece.
    key : str
        The other keys' values are read and dropped.

    Raises
    ------
    InputError
        No JSON, cut off, no such list, a key twice, a value of more than `MAX_VALUE` characters, and what
        else `ingest.reading.json_text.load_json` refuses. Everything before the fault has been yielded by
        then.
    """
    text = _Text(file)
    text.take("{", f"no list under the key {key}")
    seen: set[str] = set()
    while text.peek() != "}" or seen:
        name = text.value()
        if not isinstance(name, str):
            raise text.error("a key is no text")
        if name in seen:
            raise text.error(f"the key {name} stands twice")
        seen.add(name)
        text.take(":", "not JSON, or cut off: no ':' behind a key")
        if name == key:
            yield from _list(text, key)
        else:
            text.value()
        if text.peek() == "}":
            break
        text.take(",", "not JSON, or cut off: no ',' between two keys")
    text.take("}", "not JSON, or cut off: no '}' at the end")
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
    text.take("]", f"not JSON, or cut off: no ']' behind the list {key}")


class _Text:
    """The text of a file as far as it was decoded and not yet read."""

    def __init__(self, file: SourceFile) -> None:
        self._path = file.path
        self._decoder = strict_decoder(long_whole=True)
        self._chunks = _chunks(file)
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._ended = False
        self._text = ""
        self._at = 0
        self._lines = 1

    def peek(self) -> str:
        """The next character that is no blank; empty at the end."""
        while True:
            found = _BLANK.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text) or not self._more(CHUNK):
                return self._text[self._at : self._at + 1]

    def take(self, character: str, reason: str) -> None:
        """Step over a character that must be next."""
        if self.peek() != character:
            raise self.error(reason)
        self._at += 1

    def value(self) -> Any:
        """The next value."""
        self.peek()
        size = CHUNK
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._more(size):
                    raise self.error(f"not JSON, or cut off: {error.msg}", error.pos) from error
            except Refused as error:
                raise self.error(error.reason) from None
            except (ValueError, RecursionError) as error:
                raise self.error(f"not JSON that can be read: {error}") from error
            else:
                # A number at the end of what was decoded may go on, be it as in "1" or in "1." and "1e".
                if self._text[end : end + 1] in _BEHIND or not self._more(size):
                    if _SURROGATE.search(self._text, self._at, end) and not encodable(value):
                        raise self.error("text with half a surrogate pair, which is no character")
                    self._at = end
                    return value
            if len(self._text) > MAX_VALUE:
                raise self.error(f"a value of more than {MAX_VALUE} characters")
            size *= 2

    def error(self, reason: str, at: int | None = None) -> InputError:
        """An error at the next character, or at another one of the text."""
        at = self._at if at is None else at
        line = self._lines + self._text.count("\n", 0, at)
        start = self._text.rfind("\n", 0, at) + 1
        shown = self._text[max(start, at - 100) : at + 100].split("\n")[0]
        return InputError(reason, path=self._path, line=line, text=shown)

    def _more(self, size: int) -> bool:
        """Decode at least so many bytes more, dropping what was read; False at the end of the file."""
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
        self._lines += self._text.count("\n", 0, self._at)
        self._text = self._text[self._at :] + decoded
        self._at = 0
        return True

    def _undecodable(self, reason: str, parts: list[str], chunk: bytes, at: int) -> InputError:
        """An error at a byte of a chunk that follows the text and some parts."""
        line = self._lines + self._text.count("\n") + chunk.count(b"\n", 0, at)
        line += sum(part.count("\n") for part in parts)
        shown = chunk[max(chunk.rfind(b"\n", 0, at) + 1, at - 100) : at + 100].split(b"\n")[0]
        return InputError(reason, path=self._path, line=line, text=shown.decode("utf-8", "backslashreplace"))


def _chunks(file: SourceFile) -> Iterator[bytes]:
    """The content, at most `CHUNK` bytes at a time; none is empty."""
    for piece in file.pieces():
        for start in range(0, len(piece), CHUNK):
            yield piece[start : start + CHUNK]
