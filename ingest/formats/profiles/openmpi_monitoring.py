"""Who sends how much to whom as Open MPI's monitoring component records it: a ``.prof`` file a rank.

Made by ``mpirun --mca pml_monitoring_enable 2 --mca pml_monitoring_enable_output 3 --mca
pml_monitoring_filename DIR/app``, written when the program ends. Ranks are those of MPI_COMM_WORLD.

    # POINT TO POINT
    E  src  dst  N bytes  M msgs sent  histogram    external: the application's messages
    I  src  dst  N bytes  M msgs sent               internal: what collectives and the runtime send
    # OSC
    S|R  src  dst  N bytes  M msgs sent             one-sided: src puts to dst, src gets from dst
    # COLLECTIVES
    C  src  dst  N bytes  M msgs sent               collective calls seen from above: no traffic
    D  communicator  procs: 0,1,2
    O2A|A2O|A2A  id  N bytes  M msgs sent           collective calls by their shape: no traffic

The histogram of message sizes is missing where it was printed for the pair before. External and
internal traffic are summed unless the caller chooses otherwise. With ``enable 1`` Open MPI prints both
as ``E``. A file holds what one rank sent, so that a missing file is a missing row; output gathered
into one file is read too. The list of MPI_COMM_SELF tells whose file it is, else the file's name.

Seen from Open MPI 4.1.4.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from ingest.formats.profiles.shared import MAX_RANKS, SHOWN, missing_text, place, self_edge_warnings, stem
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError, InvalidValue
from registry.model import Profile

FORMAT = "openmpi-monitoring"
KINDS = ("E", "I", "S", "R")
"""Kinds of records that are traffic and may be summed."""
_FIRST = re.compile(r"# POINT TO POINT\s*$|[EISRC]\s+\d+\s+\d+\s+\d+ bytes\s+\d+ msgs sent")
_TRAFFIC = re.compile(
    r"([EISRC])\s+(\d{1,8})\s+(\d{1,8})\s+(\d{1,18}) bytes\s+(\d{1,18}) msgs sent(\s+[\d,]+)?\s*"
)
_LISTED = re.compile(r"\d{1,8}(?:,\d{1,8})*", re.A)
_SHAPE = re.compile(r"(?:O2A|A2O|A2A)\s+\d+\s+\d+ bytes\s+\d+ msgs sent\s*")
_RANK_IN_NAME = re.compile(r"\.(\d{1,8})\.prof$")
_SELF = "MPI_COMM_SELF"
_WORLD = "MPI_COMM_WORLD"


@dataclass(slots=True)
class _Edges:
    source: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    messages: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Recording:
    """What one file tells beside its traffic."""

    file: SourceFile
    ranks: set[int] = field(default_factory=set)
    """Ranks whose lists of MPI_COMM_SELF stand in the file."""
    owners: dict[int, int] = field(default_factory=dict)
    """Each rank that a record begins with, and the line of the first."""
    highest: int = 0
    """Highest rank that is named."""
    world: bool = False
    """Whether the list of MPI_COMM_WORLD is there."""
    lines: int = 0


def recognise(head: str, path: str) -> bool:
    """Whether the first line is the title or a record of traffic."""
    for line in head.splitlines():
        if line.strip():
            return _FIRST.match(line) is not None
    return False


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The profile of all ranks' files.

    Raises
    ------
    InputError
        A line that cannot be read or is cut off; a rank in two files; ranks without a file, unless
        `Options.allow_missing_ranks`.
    InvalidValue
        `Options.kinds` names what is no traffic.
    """
    if not set(options.kinds) <= set(KINDS):
        raise InvalidValue("Options.kinds", f"only {', '.join(KINDS)} are traffic")
    edges = _Edges()
    recordings = [_read(file, options.kinds, edges) for file in files]
    owner: dict[int, str] = {}
    for recording in recordings:
        for rank in sorted(_ranks(recording)):
            if rank in owner:
                reason = f"rank {rank} is in {owner[rank]} too: are these two runs, or two phases of one?"
                raise InputError(reason, path=recording.file.path)
            owner[rank] = recording.file.path
    _check_ends(recordings)
    ranks = 1 + max(max(recording.highest for recording in recordings), max(owner, default=0))
    missing = tuple(rank for rank in range(ranks) if rank not in owner)
    if missing and not options.allow_missing_ranks:
        raise InputError(missing_text(missing, ranks), path=place(files))
    return _profile(edges, ranks, missing, stem(place(files)), options)


def _profile(edges: _Edges, ranks: int, missing: tuple[int, ...], name: str, options: Options) -> Parsed:
    profile = Profile.from_edges(
        edges.source,
        edges.target,
        edges.bytes,
        ranks=ranks,
        messages=edges.messages,
        name=options.name or name,
        application=name,
        missing_ranks=missing,
    )
    warnings = list(self_edge_warnings(profile))
    if missing:
        warnings.append(missing_text(missing, ranks))
    return Parsed(profile=replace(profile, source=FORMAT), warnings=tuple(warnings))


def _read(file: SourceFile, kinds: Collection[str], edges: _Edges) -> _Recording:
    """Add a file's traffic to the edges; tell what else it says."""
    recording = _Recording(file)
    for number, line in enumerate(file.lines(), start=1):
        recording.lines = number
        found = _TRAFFIC.fullmatch(line)
        if found is not None:
            kind, (source, target, size, messages) = found.group(1), map(int, found.groups()[1:5])
            recording.highest = max(recording.highest, source, target)
            recording.owners.setdefault(source, number)
            if kind == "R":
                source, target = target, source
            if kind in kinds:
                edges.source.append(source)
                edges.target.append(target)
                edges.bytes.append(size)
                edges.messages.append(messages)
        elif line.startswith("D"):
            _read_members(line, number, recording)
        elif line.strip() and not line.startswith("#") and not _SHAPE.fullmatch(line):
            raise InputError("not a record, or cut off", path=file.path, line=number, text=line)
    if recording.highest >= MAX_RANKS:
        raise InputError(f"names a rank above {MAX_RANKS}", path=file.path)
    return recording


def _read_members(line: str, number: int, recording: _Recording) -> None:
    name, _, listed = line[1:].partition("procs:")
    if not _LISTED.fullmatch(listed.strip()):
        reason = "not a list of a communicator's ranks, or cut off"
        raise InputError(reason, path=recording.file.path, line=number, text=line)
    members = listed.split(",")
    recording.highest = max(recording.highest, max(map(int, members)))
    recording.world = recording.world or name.strip() == _WORLD
    if name.strip() == _SELF:
        recording.ranks.update(map(int, members))


def _ranks(recording: _Recording) -> Collection[int]:
    """Ranks whose sends the file holds."""
    named = _RANK_IN_NAME.search(PurePath(recording.file.path).name)
    ranks = recording.ranks or ({int(named.group(1))} if named else set(recording.owners))
    for owner, line in recording.owners.items():
        if owner not in ranks:
            shown = ", ".join(str(rank) for rank in sorted(ranks)[:SHOWN])
            reason = f"tells what rank {owner} sends, in the file of rank {shown}"
            raise InputError(reason, path=recording.file.path, line=line)
    return ranks


def _check_ends(recordings: Sequence[_Recording]) -> None:
    """Each file ends with the list of communicators, if any file does: one without it was cut off."""
    if not any(recording.world for recording in recordings):
        return
    for recording in recordings:
        if not recording.world:
            reason = f"ends before its list of {_WORLD}: it is cut off"
            raise InputError(reason, path=recording.file.path, line=recording.lines)
