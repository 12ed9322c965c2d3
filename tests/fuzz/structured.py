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
    places = _places(document)
    if not places:
        return words(random, data)
    holder, key = random.choice(places)
    how = random.randrange(8)
    if how == 0:
        del holder[key]
    elif how == 1:
        other, at = random.choice(places)
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


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Every list or object with every key of it."""
    found: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting and len(found) < 20_000:
        value = waiting.pop()
        keys = (
            list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        )
        for key in keys:
            found.append((value, key))
            waiting.append(value[key])
    return found


def _holds_nothing(value: Any) -> bool:
    """Whether a value holds nothing itself, so that no document comes to hold itself."""
    return not isinstance(value, (dict, list)) or not value


def zip_member(random: Random, data: bytes) -> bytes:
    """One member of a zip archive damaged and packed again, so that its check sum is right."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        OSError,
        ValueError,
        NotImplementedError,
        RuntimeError,
        EOFError,
    ):
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
                archive.writestr(
                    random.choice((f"x{name}", "../up.npy", "/abs.npy", "format.npy", "src.npy")), content
                )
            elif how > 1:
                archive.writestr(name, _header(random, content))
    return out.getvalue()


def _header(random: Random, content: bytes) -> bytes:
    """An array of NumPy whose header or content is damaged."""
    if random.random() < 0.5:
        kinds = (
            b"'<f8'",
            b"'<i8'",
            b"'|O'",
            b"'<c16'",
            b"'|S4'",
            b"'<U4'",
            b"'|b1'",
            b"'>i4'",
            b"'<m8[s]'",
            b"'<f2'",
        )
        shapes = (
            b"(1,)",
            b"()",
            b"(0,)",
            b"(-1,)",
            b"(999999999999,)",
            b"(2, 2)",
            b"(4294967296, 4294967296)",
            b"(1.5,)",
        )
        found = re.search(rb"'<[a-z][0-9]+'" if random.random() < 0.5 else rb"\([0-9, ]*\)", content)
        if found:
            new = random.choice(kinds if found.group().startswith(b"'") else shapes)
            return content[: found.start()] + new + content[found.end() :]
    start = min(random.choice((0, 10, 128)), len(content))
    return content[:start] + random.choice((flip, cut, overwrite, numbers))(random, content[start:])
