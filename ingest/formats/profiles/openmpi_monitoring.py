"""A communication profile of Open MPI's monitoring component: one ``.prof`` file per rank.

The files are written at the end of a program started with ``mpirun --mca pml_monitoring_enable 2 --mca
pml_monitoring_enable_output 3 --mca pml_monitoring_filename DIR/app``. Ranks are those of MPI_COMM_WORLD.

    # POINT TO POINT
    E  src  dst  N bytes  M msgs sent  histogram    external: the application's messages
    I  src  dst  N bytes  M msgs sent               internal: messages of collectives and the runtime
    # OSC
    S|R  src  dst  N bytes  M msgs sent             one-sided: src puts to dst, src gets from dst
    # COLLECTIVES
    C  src  dst  N bytes  M msgs sent               arguments of collective calls: no traffic
    D  communicator  procs: 0,1,2
    O2A|A2O|A2A  id  N bytes  M msgs sent           collective calls by their shape: no traffic

The histogram of message sizes is missing if it was printed for the same pair before. External and internal
traffic are summed by default. With ``enable 1`` Open MPI prints both as ``E``. A file contains what one rank
sent, so that a missing file is a missing row; output of all ranks in one file is accepted, too. The list of
MPI_COMM_SELF gives the rank of a file, else the file's name. Tested with Open MPI 4.1.4.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from ingest.formats.profiles.shared import (
    MAX_RANKS,
    SHOWN,
    missing_ranks,
    missing_text,
    place,
    profile_of,
    self_edge_warnings,
)
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError, InvalidValue

KINDS = ("E", "I", "S", "R")
"""Kinds of records that are traffic."""
_FIRST = re.compile(r"# POINT TO POINT\s*$|[EISRC]\s+\d+\s+\d+\s+\d+ bytes\s+\d+ msgs sent")
_TRAFFIC = re.compile(
    r"([EISRC])\s+(\d{1,8})\s+(\d{1,8})\s+(\d{1,18}) bytes\s+(\d{1,18}) msgs sent(\s+[\d,]+)?\s*"
)
_LISTED = re.compile(r"\d{1,8}(?:,\d{1,8})*+", re.A)
_SHAPE = re.compile(r"(?:O2A|A2O|A2A)\s+\d+\s+\d+ bytes\s+\d+ msgs sent\s*")
_RANK_IN_NAME = re.compile(r"\.(\d{1,8})\.prof$")
_SELF = "MPI_COMM_SELF"
_WORLD = "MPI_COMM_WORLD"


@dataclass(slots=True)
class _Recording:
    """Content of one file besides its traffic."""

    file: SourceFile
    ranks: set[int] = field(default_factory=set)
    """Ranks whose lists of MPI_COMM_SELF are in the file."""
    owners: dict[int, int] = field(default_factory=dict)
    """Each rank at the start of a record, and the line of the first record."""
    highest: int = 0
    """Highest rank in the file."""
    world: bool = False
    """True if the list of MPI_COMM_WORLD is present."""
    lines: int = 0


def _recognise_openmpi_monitoring(head: str, path: str) -> bool:
    """Return True if the first line is the title or a record of traffic."""
    for line in head.splitlines():
        if line.strip():
            return _FIRST.match(line) is not None
    return False


def _parse_openmpi_monitoring(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the profile of all ranks' files.

    A truncated line, and a rank in two files, are errors.

    Raises:
        InvalidValue: `Options.kinds` contains a kind that is not traffic.
    """
    if not set(options.kinds) <= set(KINDS):
        raise InvalidValue("Options.kinds", f"only {', '.join(KINDS)} are traffic")
    edges: list[tuple[int, int, int, int]] = []
    recordings = [_read(file, options.kinds, edges) for file in files]
    owner: dict[int, str] = {}
    for recording in recordings:
        for rank in sorted(_ranks(recording)):
            if rank in owner:
                reason = f"rank {rank} is also in {owner[rank]}: are these two runs, or two phases of one?"
                raise InputError(reason, path=recording.file.path)
            owner[rank] = recording.file.path
    _check_ends(recordings)
    ranks = 1 + max(max(recording.highest for recording in recordings), max(owner, default=0))
    missing = missing_ranks(owner, range(ranks), place(files), options)
    columns = np.array(edges, np.int64).reshape(-1, 4).T
    profile = profile_of(columns, ranks, place(files), OPENMPI_MONITORING.name, options, missing=missing)
    notes = (missing_text(missing, ranks),) if missing else ()
    return Parsed(profiles=(profile,), warnings=(*self_edge_warnings(profile), *notes))


def _read(file: SourceFile, kinds: Collection[str], edges: list[tuple[int, int, int, int]]) -> _Recording:
    """Add the traffic of a file to the edges (source, target, bytes, messages); return its other content."""
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
                edges.append((source, target, size, messages))
        elif line.startswith("D"):
            _read_members(line, number, recording)
        elif line.strip() and not line.startswith("#") and not _SHAPE.fullmatch(line):
            raise InputError("invalid or truncated record", path=file.path, line=number, text=line)
    if recording.highest >= MAX_RANKS:
        raise InputError(f"contains a rank above {MAX_RANKS}", path=file.path)
    return recording


def _read_members(line: str, number: int, recording: _Recording) -> None:
    name, _, listed = line[1:].partition("procs:")
    if not _LISTED.fullmatch(listed.strip()):
        reason = "invalid or truncated list of a communicator's ranks"
        raise InputError(reason, path=recording.file.path, line=number, text=line)
    members = listed.split(",")
    recording.highest = max(recording.highest, max(map(int, members)))
    recording.world = recording.world or name.strip() == _WORLD
    if name.strip() == _SELF:
        recording.ranks.update(map(int, members))


def _ranks(recording: _Recording) -> Collection[int]:
    """Return the ranks whose sends are in the file."""
    named = _RANK_IN_NAME.search(PurePath(recording.file.path).name)
    ranks = recording.ranks or ({int(named.group(1))} if named else set(recording.owners))
    for owner, line in recording.owners.items():
        if owner not in ranks:
            shown = ", ".join(str(rank) for rank in sorted(ranks)[:SHOWN])
            reason = f"the file of rank {shown} contains what rank {owner} sends"
            raise InputError(reason, path=recording.file.path, line=line)
    return ranks


def _check_ends(recordings: Sequence[_Recording]) -> None:
    """Raise `InputError` if a file lacks the final list of communicators that other files have."""
    if not any(recording.world for recording in recordings):
        return
    for recording in recordings:
        if not recording.world:
            reason = f"the list of {_WORLD} at the end is missing: the file is truncated"
            raise InputError(reason, path=recording.file.path, line=recording.lines)


OPENMPI_MONITORING = Format(
    "openmpi-monitoring",
    kind="profile",
    evidence="real",
    about="profile: .prof files of Open MPI's monitoring, folder or tar archive",
    recognise=_recognise_openmpi_monitoring,
    parse=_parse_openmpi_monitoring,
    grouped=True,
)
