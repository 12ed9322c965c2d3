"""What a file format is, and what its parser returns: the data of one source."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from ingest.options import Options
from ingest.reading.source import SourceFile
from registry import units
from registry.errors import InputError
from registry.model import Bools, Profile
from registry.model.arrays import readonly
from registry.model.intake import IngestedData

BELOW_MPI = ("openmpi-monitoring", "ai-layout", "nccl-graph", "nccl-log", "pytorch-trace", "generated")
"""Sources of profiles that record below the functions of MPI, so that no wrapper can count twice."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parsed(IngestedData):
    """Data of one source; `IngestedData` has an attribute for each kind.

    The fabric's `observed_at` is the time of the scan, or None if the source does not contain it. Counters
    and intended wiring carry the caller's time (default: the time of the file).
    """

    assumed: Bools | None = None
    """bool[m] or None: true for links whose capacity is missing in the source, so that another source may
    supply it. None if no capacity is missing.
    """
    incomplete: str = ""
    """Reason why the source alone is no fabric (it contains no links), and which files to add. Empty if it is
    complete.
    """
    warnings: tuple[str, ...] = ()
    """Oddities that did not prevent reading, counted, one line each."""

    def __post_init__(self) -> None:
        if self.assumed is not None:
            object.__setattr__(self, "assumed", readonly(self.assumed, np.bool_, "Parsed.assumed"))
        if self.profiles and not self.traces:
            object.__setattr__(self, "traces", (None,) * len(self.profiles))


Recognise = Callable[[str, str], bool]
Parse = Callable[[Sequence[SourceFile], Options], Parsed]
PLUG_IN = "plug-in"
"""Evidence of the formats of other packages."""


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: one object in the module that reads it, listed in `ingest.catalog`."""

    name: str
    """Name for ``--format``."""
    _: KW_ONLY
    kind: str
    """Kind of data: ``fabric``, ``tables``, ``counters``, ``intended``, ``layouts``, ``profile``, ``jobs`` or
    ``placement``.
    """
    about: str
    """Description in one line."""
    recognise: Recognise
    """Returns True if a file that begins with ``head`` is of the format; never raises. `head` is the first 64
    KiB of the decompressed content, undecodable bytes replaced; ``path`` is for formats whose file names
    carry meaning: the content must decide.
    """
    parse: Parse
    """Returns the data of the files of one source: several for a grouped format, otherwise one. Raises
    `InputError` with file, line, text and reason if the content is invalid (an unreadable line, a truncated
    file, something repeated or missing, values that contradict each other), and no other exception, whatever
    the bytes are.
    """
    evidence: str = PLUG_IN
    """How well the format is tested: ``real`` (against output of the tool itself), ``public`` (against
    published samples or the tool's source), ``own`` (a format of this project) or ``plug-in``.
    """
    grouped: bool = False
    """True if several files make one source."""
    streamed: bool = False
    """True if large files are read piece by piece; other formats get their files in memory."""
    package: str = ""
    """Package and version that a plug-in is from; empty for the program's own formats."""


def contains(pattern: str) -> Recognise:
    """Return the function `Format.recognise` of a format that has a pattern; ``^`` is any line's start."""
    compiled = re.compile(pattern, re.MULTILINE)
    return lambda head, path: compiled.search(head) is not None


Count = tuple[int, str, str, str]
"""A number, how its warning goes on if it is 1 (``node is``) and if not (``nodes are``), and the rest."""


def counted(*counts: Count) -> list[str]:
    """Return a warning such as ``3 nodes are not up`` for each count that is not 0."""
    return [f"{units.counted(count, one, many)} {rest}" for count, one, many, rest in counts if count]


def undo_double_counting(parsed: Parsed, by: int, path: str) -> Parsed:
    """Return the data with bytes and messages of its profile divided, or with a warning if they look doubled.

    A wrapper that hooks both the Fortran and the C entry points of MPI counts every message of a Fortran
    program twice (observed with MPICH, whose Fortran stubs call the C functions by their public names). Every
    pair then has twice its messages and bytes, so that both are even. That alone proves nothing: programs may
    send in pairs, too.

    Args:
        parsed: Data of one source; returned unchanged if it has no profile.
        by: Number of times each message was recorded; 1 divides nothing.
        path: Path of the source, for errors.

    Raises:
        InputError: Messages or bytes of a pair are no multiple of `by`, or the source is a trace (it cannot
            be divided).
    """
    if not parsed.profiles:
        return parsed
    (profile,) = parsed.profiles
    if parsed.traces[0] is not None:
        if by != 1:
            reason = "a trace cannot be divided: duplicates of messages cannot be identified"
            raise InputError(reason, path=path)
        return parsed
    if by == 1:
        return replace(parsed, warnings=(*parsed.warnings, *_doubled(profile)))
    whole = bool((profile.bytes == np.floor(profile.bytes)).all())
    odd = (profile.messages % by != 0) | (whole & (profile.bytes % by != 0))
    if bool(odd.any()):
        first = int(np.flatnonzero(odd)[0])
        pair = f"{profile.sender[first]} to {profile.partner[first]}"
        counts = f"{profile.messages[first]} messages, {profile.bytes[first]:.0f} bytes"
        reason = f"cannot have been recorded {by} times: {int(odd.sum())} pairs are no multiples of {by}"
        raise InputError(reason, path=path, text=f"{pair}: {counts}")
    divided = replace(
        profile,
        bytes=profile.bytes / by,
        messages=profile.messages // by,
        self_bytes=profile.self_bytes / by,
        source=f"{profile.source}, divided by {by}",
    )
    warning = f"bytes and messages are divided by {by}"
    return replace(parsed, profiles=(divided,), warnings=(*parsed.warnings, warning))


def _doubled(profile: Profile) -> list[str]:
    """Return a warning if every pair has an even number of messages and bytes."""
    if profile.source.startswith(BELOW_MPI) or not profile.pairs or not bool(profile.messages.any()):
        return []
    if (profile.messages % 2).any() or (profile.bytes % 2).any():
        return []
    return [
        "every pair has an even number of messages and of bytes: a wrapper that records messages twice "
        "produces this, but so may a correct recording; --divide 2 halves it"
    ]
