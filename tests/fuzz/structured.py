"""Ways to damage what has a structure: values of JSON, members of zip archives, arrays of NumPy."""

from __future__ import annotations

import io
import json
import lzma
import re
import zipfile
import zlib
from random import Random
from typing import Any

from tests.fuzz.mutations import ANY, Mutation, cut, entities, flip, numbers, overwrite, words

PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)
DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, ValueError, RuntimeError, EOFError)
"""What comes of an archive that is damaged already; `NotImplementedError` is a `RuntimeError`."""
KINDS = tuple(b"'%s'" % kind for kind in b"<f8 <i8 |O <c16 |S4 <U4 |b1 >i4 <m8[s] <f2".split())
SHAPES = b"(1,);();(0,);(-1,);(999999999999,);(2, 2);(4294967296, 4294967296);(1.5,)".split(b";")
"""Types and shapes in the header of an array."""


def for_content(data: bytes) -> tuple[Mutation, ...]:
    """The mutations that suit a file, those for its kind of content often."""
    start = data[:64].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"{", b"[")):
        return ANY + (json_value,) * len(ANY)
    if start.startswith(b"<"):
        return (*ANY, entities)
    if start.startswith(b"PK"):
        return ANY + (zip_member,) * len(ANY)
    return ANY


def json_value(random: Random, data: bytes) -> bytes:
    """One value of a JSON document replaced, lost or given under another key."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return words(random, data)
    if not isinstance(document, (dict, list)) or not document:
        return words(random, data)
    holder, key = _place(random, document)
    how = random.randrange(8)
    if how == 0:
        del holder[key]
    elif how == 1:
        other, at = _place(random, document)
        holder[key] = other[at] if _holds_nothing(other[at]) else None
    elif how == 2 and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif how == 3 and isinstance(holder, dict):
        holder[random.choice(("", "name", "x", f"{key}2", "\ud800", "0"))] = holder.pop(key)
    else:
        holder[key] = random.choice(JUNK_VALUES)
    return json.dumps(document).encode()


JUNK_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**400, 1.5, 1e308,
    float("nan"), "",
    "0", "-1", "x", "\ud800", "\0", "a\nb", "[1-9]", "0x1", "1e3", "\u0663", [], [[]], [None], ["x"], [0,
    0], [{}], {},
    {"": 1}, {"id": "x"}, {"set": True, "infinite": False, "number": 7}, {"set": True, "infinite": True,
    "number": 0},
    "a" * 1000,
)  # fmt: skip


def _place(random: Random, document: Any) -> tuple[Any, Any]:
    """A list or object and a key of it, on any level: those near the top are as likely as the many below."""
    holder = document
    while True:
        key = random.choice(list(holder)) if isinstance(holder, dict) else random.randrange(len(holder))
        if _holds_nothing(holder[key]) or random.random() < 0.3:
            return holder, key
        holder = holder[key]


def _holds_nothing(value: Any) -> bool:
    """Whether a value holds nothing itself, so that no document comes to hold itself."""
    return not isinstance(value, (dict, list)) or not value


def zip_member(random: Random, data: bytes) -> bytes:
    """One member of a zip archive damaged and packed again, so that its check sum is right."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
    except DAMAGED:
        return overwrite(random, data)
    out = io.BytesIO()
    at = random.randrange(len(members)) if members else 0
    with zipfile.ZipFile(out, "w", random.choice(PACKED)) as archive:
        for index, (name, content) in enumerate(members):
            if index != at:
                archive.writestr(name, content)
                continue
            how = random.randrange(4)
            if how == 0:
                other = random.choice((f"x{name}", "../up.npy", "/abs.npy", "format.npy", "src.npy"))
                archive.writestr(other, content)
            elif how > 1:
                archive.writestr(name, _header(random, content))
    return out.getvalue()


def _header(random: Random, content: bytes) -> bytes:
    """An array of NumPy whose header or content is damaged."""
    if random.random() < 0.5:
        found = re.search(rb"'<[a-z][0-9]+'" if random.random() < 0.5 else rb"\([0-9, ]*\)", content)
        if found:
            new = random.choice(KINDS if found.group().startswith(b"'") else SHAPES)
            return content[: found.start()] + new + content[found.end() :]
    start = min(random.choice((0, 10, 128)), len(content))
    return content[:start] + random.choice((flip, cut, overwrite, numbers))(random, content[start:])
