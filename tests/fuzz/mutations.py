"""Ways to damage the bytes of a file, each a function of a generator and the bytes; some know a structure."""

from __future__ import annotations

import io
import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

from tests.fuzz.samples import everything

HUGE = 10_000_000
"""Bytes of a line that is too long, and brackets of a document that is too deep."""
NUMBERS = (
    b"-1", b"0", b"1", b"-0", b"00", b"255", b"65535", b"65536", b"4294967295", b"4294967296", b"16777216",
    b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808", b"18446744073709551615",
    b"18446744073709551616", b"1e308", b"1e309", b"1e-320", b"-1e400", b"1" + b"0" * 400, b"9" * 5000, b"nan",
    b"NaN", b"inf", b"-Infinity", b"0x", b"0xffffffffffffffff", b"0x10000000000000000", b"1_000", b"1.5",
    b".5", b"+3", "\u0663".encode(), "\u00b2".encode(), b"1e", b"true", b"",
)  # fmt: skip
"""What takes the place of a number: of other widths, kinds and alphabets."""
WORDS = (
    b"", b" ", b"\t", b"\n", b"\r", b"\0", b"-", b"#", b"=", b"|", b",", b";", b":", b'"', b"'", b"[", b"]",
    b"{", b"}", b"[]", b"{}", b"<", b">", b"&lt;", b"(", b")", b"*", b"%s", b"None", b"null", b"(null)",
    b"Unknown", b"N/A", b"[0-", b"[1-999999999]", b"n[0-9][0-9][0-9]", b"[3-1]", b"../../x", b"/etc/passwd",
    b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\\ud800", b"\\u0000", "\u2028".encode(), "\u0130".encode(),
    "\U0001f600".encode(), b"\x0b", b"\x85", b"\x1b[31m", b"a" * 300, b"- " * 300, b"&a *a",
    b"!!python/object/apply:os.system [x]", b"<!-- ", b"<![CDATA[", b"${x}", b"0000-00-00T00:00:00",
    b"9999-12-31T23:59:59", b"1-00:00:00", b"x(y(z", b"node[01-3]",
)  # fmt: skip
"""What takes the place of a word: nothing, separators, brackets left open, other encodings, markup, dates."""
ENTITIES = (
    b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
    b'<!DOCTYPE a [<!ENTITY e "x"><!ENTITY f "&e;&e;&e;&e;&e;&e;&e;"><!ENTITY g "&f;&f;&f;&f;&f;&f;">]>',
    b'<!DOCTYPE a SYSTEM "http://127.0.0.1:9/x.dtd">',
)
DEEP = (
    (b"[", b"]"), (b'{"a":', b"}"), (b"<a>", b"</a>"), (b"(", b")"), (b"- ", b""), (b"{a: ", b"}"),
    (b"a[", b"]"),
)  # fmt: skip
RUNS = (
    b" ", b"\n", b"\t", b"a", b"9", b"0x", b"[", b"(", b'"', b"a b ", b"1 ", b"a=", b"a=b ", b", ", b"1,",
    b"|", b":", b" \n", b'"a" ', b"-", b"#", b"a[", b"[1]", b"(1) ", b"0x1 ", b"a.b.", b"_", b"a\n", b"\r",
    b"[1,1]\n", b"<a>", b"1/", b"1:",
)  # fmt: skip
ENDS = (b"\r\n", b"\r", b"\n\r", b"\x0c\n", b"\n\n", b"\x85", b" \n", b"\\\n")

WINDOW = 4000
"""Bytes of a large file in which a number or a word is looked for."""

Mutation = Callable[[Random, bytes], bytes]

_NUMBER = re.compile(rb"(?:0x)?[0-9][0-9a-fA-F]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORD = re.compile(rb"[^\s,;:|=<>\[\](){}\"']+")


def span(random: Random, data: bytes, longest: int = 400) -> tuple[int, int]:
    """Beginning and end of a piece, mostly a short one."""
    start = random.randint(0, len(data))
    return start, min(len(data), start + int(random.random() ** 3 * longest))


def flip(random: Random, data: bytes) -> bytes:
    """A few bits turned."""
    turned = bytearray(data)
    for _ in range(random.randint(1, 4) if data else 0):
        turned[random.randrange(len(turned))] ^= 1 << random.randrange(8)
    return bytes(turned)


def overwrite(random: Random, data: bytes) -> bytes:
    """A piece replaced by junk, or junk put in."""
    start, end = span(random, data, 20)
    return data[:start] + random.choice((*WORDS, *NUMBERS, random.randbytes(4))) + data[end:]


def cut(random: Random, data: bytes) -> bytes:
    """The end, or the beginning, lost."""
    at = random.randint(0, len(data))
    return data[:at] if random.random() < 0.8 else data[at:]


def lose(random: Random, data: bytes) -> bytes:
    """A piece lost."""
    start, end = span(random, data)
    return data[:start] + data[end:]


def double(random: Random, data: bytes) -> bytes:
    """A piece given twice."""
    start, end = span(random, data)
    return data[:end] + data[start:]


def lines(random: Random, data: bytes) -> bytes:
    """A line lost, doubled, often repeated, moved, or two exchanged or joined."""
    parts = data.split(b"\n")
    i, j = random.randrange(len(parts)), random.randrange(len(parts))
    how = random.randrange(7)
    if how == 0:
        del parts[i]
    elif how == 1:
        parts.insert(j, parts[i])
    elif how == 2:
        parts[i:i] = [parts[i]] * random.choice((2, 10, 300))
    elif how == 3:
        parts.insert(j, parts.pop(i))
    elif how == 4:
        parts[i], parts[j] = parts[j], parts[i]
    elif how == 5:
        parts[i : i + 2] = [b" ".join(parts[i : i + 2])]
    else:
        parts[min(i, j) : max(i, j)] = reversed(parts[min(i, j) : max(i, j)])
    return b"\n".join(parts)


def contradict(random: Random, data: bytes) -> bytes:
    """A line repeated with another number or word in it."""
    parts = data.split(b"\n")
    at = random.randrange(len(parts))
    change = random.choice((numbers, words))
    parts.insert(at + random.randint(0, 1), change(random, parts[at]))
    return b"\n".join(parts)


def numbers(random: Random, data: bytes) -> bytes:
    """A number, or some, replaced by an extreme one or by one a little larger."""
    found = _some(random, _NUMBER, data)
    if not found:
        return overwrite(random, data)
    chosen = random.sample(found, min(len(found), random.choice((1, 1, 1, 3))))
    for match in sorted(chosen, key=lambda match: -match.start()):
        digits = match.group()
        near = digits
        if digits.isdigit() and len(digits) < 30:
            near = b"%d" % (int(digits) + random.choice((-1, 1, 7)))
        new = near if random.random() < 0.3 else random.choice(NUMBERS)
        data = data[: match.start()] + new + data[match.end() :]
    return data


def words(random: Random, data: bytes) -> bytes:
    """A word replaced by junk or by another word of the file, lost, or exchanged everywhere."""
    found = _some(random, _WORD, data)
    if not found:
        return overwrite(random, data)
    match = random.choice(found)
    new = random.choice(found).group() if random.random() < 0.6 else random.choice(WORDS)
    if random.random() < 0.1:
        return data.replace(match.group(), new, 100)
    return data[: match.start()] + new + data[match.end() :]


def _some(random: Random, pattern: re.Pattern[bytes], data: bytes) -> list[re.Match[bytes]]:
    """Matches in a file; of a large one, those in a piece of it without the two that may be cut."""
    start = random.randint(0, len(data) - WINDOW) if len(data) > WINDOW else 0
    found = list(pattern.finditer(data, start, start + WINDOW))
    return (found[1:-1] if start else found[:-1]) or found if len(data) > WINDOW else found


def ends(random: Random, data: bytes) -> bytes:
    """Lines that end as nothing else in the file does, here and there or everywhere."""
    end, parts = random.choice(ENDS), data.split(b"\n")
    often = random.choice((0.05, 0.5, 1.0))
    return b"".join(part + (end if random.random() < often else b"\n") for part in parts)


def encode(random: Random, data: bytes) -> bytes:
    """Another encoding, or a byte order mark."""
    text = data.decode("utf-8", "replace")
    return random.choice(
        (b"\xef\xbb\xbf" + data, text.encode("utf-16"), text.encode("utf-32"), data + b"\x1a")
    )


def splice(random: Random, data: bytes) -> bytes:
    """The beginning of this and the end of another sample, of any format, or that one put in the midst."""
    other = random.choice(everything()).data[: 1 << 16]
    at, where = random.randint(0, len(data)), random.randint(0, len(other))
    return data[:at] + other[where:] + (data[at:] if random.random() < 0.5 else b"")


def entities(random: Random, data: bytes) -> bytes:
    """A document type with entities before the first element, and one of them used."""
    at = data.find(b"?>") + 2 if b"?>" in data else 0
    used = data[at:].replace(b'="', b'="&g;', 1) if random.random() < 0.5 else data[at:]
    return data[:at] + random.choice(ENTITIES) + used


def deep(random: Random, data: bytes) -> bytes:
    """Something nested very deep, put in or instead."""
    opened, closed = random.choice(DEEP)
    depth = random.choice((150, 1_000, 100_000))
    nest = opened * depth + closed * (depth if random.random() < 0.7 else 0)
    start, end = span(random, data, 10)
    return nest if random.random() < 0.3 else data[:start] + nest + data[end:]


def run(random: Random, data: bytes) -> bytes:
    """A piece repeated over 64 KiB, as much as a format is recognised by: what patterns may try."""
    start, end = span(random, data, 30)
    piece = random.choice((data[start:end], random.choice(RUNS))) or b" "
    filled = piece * (65_536 // len(piece))
    return data[:start] + filled + (data[end:] if random.random() < 0.5 else b"")


def huge(random: Random, data: bytes) -> bytes:
    """A line of ten million bytes: a byte, a word or a piece of the file again and again."""
    start, end = span(random, data, 60)
    piece = random.choice(
        (data[start:end].replace(b"\n", b" "), b"a", b"9", b" ", b",", b"(", b"\t", b"a=b,", b"1 ")
    )
    line = (piece or b"x") * (HUGE // max(len(piece), 1))
    where = data.find(b"\n", start)
    where = random.choice((start, where + 1 or len(data)))
    return data[:where] + line + data[where:]


ANY: tuple[Mutation, ...] = (
    flip, overwrite, overwrite, cut, lose, double, lines, lines, contradict, contradict, numbers, numbers,
    numbers, words, words, words, ends, encode, splice, deep, run,
)  # fmt: skip
"""What any file gets, in the proportions in which it does."""


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
    float("nan"), "", "0", "-1", "x", "\ud800", "\0", "a\nb", "[1-9]", "0x1", "1e3", "\u0663", [], [[]],
    [None], ["x"], [0,     0], [{}], {}, {"": 1}, {"id": "x"}, {"set": True, "infinite": False, "number": 7},
    {"set": True, "infinite": True,     "number": 0}, "a" * 1000,
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
