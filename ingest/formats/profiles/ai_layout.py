"""The communication profile of training a large model, from its declared layout in TOML.

The file contains what users know without a recording: the sizes of the parallel groups, the numbering of
ranks, and bytes per step. docs/reference/formats/profiles.md lists all keys;
`ingest.generate.collectives.ai_layout` converts them to edges.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ingest.formats.profiles.shared import MAX_RANKS, stem
from ingest.generate.collectives import DIMENSIONS, AiLayout, ai_layout
from ingest.options import COLLECTIVES, Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError, InvalidValue
from registry.model import Profile

SIZES = ("tensor", "context", "data", "pipeline", "expert")
BYTES = ("tensor", "context", "data", "pipeline", "expert", "expert_data")
_TABLE = re.compile(r"^[ \t]*\[parallel\][ \t\r]*(?:#.*)?$", re.M)
_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_MOST = 1 << 20
"""Largest file in bytes."""


def _recognise_ai_layout(head: str, path: str) -> bool:
    """Return True if the file is text with a table ``[parallel]`` on its own line."""
    return "\0" not in head and _TABLE.search(head) is not None


def _parse_ai_layout(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the profile of one step.

    An unknown key, sizes whose product is not the number of ranks, and missing bytes for a dimension in use,
    are errors.
    """
    (file,) = files
    document = _Table(_load(file), "", file)
    name = document.text("name", "")
    ranks = document.whole("ranks", 0)
    arguments = _arguments(document)
    product = math.prod(arguments[size] for size in DIMENSIONS)
    if ranks and ranks != product:
        sizes = " x ".join(f"{size} {arguments[size]}" for size in DIMENSIONS)
        raise InputError(f"ranks is {ranks}, but {sizes} is {product}", path=file.path)
    try:
        profile = ai_layout(AiLayout(**arguments))
    except InvalidValue as error:
        raise InputError(str(error).removeprefix("ai_layout."), path=file.path) from error
    name = options.name or name or stem(file.path)
    profile = replace(profile, name=name, application=name, source=AI_LAYOUT.name)
    return Parsed(profiles=(profile,), warnings=_warnings(profile, arguments["domain"]))


def _arguments(document: _Table) -> dict[str, Any]:
    """Return the arguments of `AiLayout`."""
    parallel, sent = document.table("parallel"), document.table("bytes")
    algorithm, nvlink = document.table("algorithm"), document.table("nvlink")
    arguments: dict[str, Any] = {size: parallel.whole(size, 1) for size in SIZES}
    arguments["order"] = parallel.texts("order", DIMENSIONS)
    arguments["interleaved"] = parallel.flag("interleaved", False)
    for name in BYTES:
        used = arguments["expert" if name == "expert_data" else name] > 1
        given = sent.number(name, None)
        if used and given is None and name != "expert_data":
            raise InputError(f"bytes.{name} is missing: {name} is {arguments[name]}", path=document.file.path)
        arguments[f"{name}_bytes"] = given or 0.0
    for name in ("tensor", "data"):
        arguments[f"{name}_algorithm"] = algorithm.text(name, "ring", COLLECTIVES)
    arguments["domain"] = nvlink.whole("domain", 0) or None
    arguments["keep_inside"] = nvlink.text("inside", "keep", ("keep", "leave out")) == "keep"
    for table in (document, parallel, sent, algorithm, nvlink):
        table.finish()
    return arguments


def _warnings(profile: Profile, domain: int | None) -> tuple[str, ...]:
    if domain is None or not profile.pairs:
        return ()
    inside = profile.bytes[profile.sender // domain == profile.partner // domain].sum()
    share = inside / profile.bytes.sum()
    return (f"{share:.1%} of the bytes stay within NVLink domains of {domain} ranks in the order of ranks",)


def _load(file: SourceFile) -> dict[str, Any]:
    if len(file.data) > _MOST:
        raise InputError(f"more than {_MOST} bytes", path=file.path)
    try:
        return tomllib.loads(file.text().replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        found = _LINE.search(str(error))
        reason = f"invalid TOML: {_LINE.sub('', str(error)).strip()}".split("\n")[0]
        raise InputError(reason, path=file.path, line=int(found[1]) if found else None) from error


class _Table:
    """A table with typed access; keys that were never read are unknown."""

    def __init__(self, values: Mapping[str, Any], name: str, file: SourceFile) -> None:
        self._left = dict(values)
        self._known: list[str] = []
        self._name = name
        self.file = file

    def _take(self, key: str, default: Any) -> Any:
        self._known.append(key)
        return self._left.pop(key, default)

    def _error(self, key: str, reason: str, value: Any) -> InputError:
        return InputError(f"{self._name}{key} {reason}", path=self.file.path, text=repr(value))

    def table(self, key: str) -> _Table:
        """Return a table; empty if it is missing."""
        value = self._take(key, {})
        if not isinstance(value, dict):
            raise self._error(key, "must be a table", value)
        return _Table(value, f"{self._name}{key}.", self.file)

    def whole(self, key: str, default: int) -> int:
        """Return a whole number from 1 on."""
        value = self._take(key, default)
        if value is not default and (
            isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_RANKS
        ):
            raise self._error(key, f"must be a whole number from 1 to {MAX_RANKS}", value)
        return int(value)

    def number(self, key: str, default: float | None) -> float | None:
        """Return a finite number from 0 on."""
        value = self._take(key, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e300:
            raise self._error(key, "must be a number from 0 on", value)
        return float(value)

    def text(self, key: str, default: str, known: Sequence[str] = ()) -> str:
        """Return a text, possibly one of the known ones."""
        value = self._take(key, default)
        if not isinstance(value, str) or (known and value not in known):
            raise self._error(key, f"must be {'one of ' + ', '.join(known) if known else 'text'}", value)
        return value

    def texts(self, key: str, default: Sequence[str]) -> tuple[str, ...]:
        """Return a list of texts."""
        value = self._take(key, list(default))
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._error(key, "must be a list of texts", value)
        return tuple(value)

    def flag(self, key: str, default: bool) -> bool:
        """Return true or false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self._error(key, "must be true or false", value)
        return value

    def finish(self) -> None:
        """Raise `InputError` for keys that were not read, since they may be typos."""
        for key in self._left:
            reason = f"there is no key {self._name}{key}; known: {', '.join(self._known)}"
            raise InputError(reason, path=self.file.path)


AI_LAYOUT = Format(
    "ai-layout",
    kind="profile",
    evidence="own",
    about="profile: declared layout of AI training in TOML",
    recognise=_recognise_ai_layout,
    parse=_parse_ai_layout,
)
