"""A placement as a job's own report: a rank and its host a line, in any order; ``#`` begins a comment.

What a program prints of each rank, as it is or as launchers label it:

    3 node1                  the program's own, or LibTopoMap's file of fake hosts
    3: node1                 srun --label hostname
    3: 3 node1 more words    srun --label of a program that prints its rank and host first
    [3] node1                mpiexec -prepend-rank hostname (MPICH)
    [1,3]<stdout>:node1      mpirun --tag-output hostname (Open MPI)

One kind of line a file. Seen from Slurm 22.05, MPICH's hydra 4.0.2 and Open MPI 4.1.4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.formats.placements.orders import HOST, Seat, by_rank, head_lines, significant
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

FORMAT = "rank-list"
_NAME = rf"(?=[^\s]*[A-Za-z]){HOST}"
"""A host's name; a number alone could be anything."""
_KINDS = tuple(
    re.compile(pattern, re.A)
    for pattern in (
        rf"(?P<rank>\d{{1,8}})\s+(?P<host>{_NAME})",
        rf"(?P<rank>\d{{1,8}}):\s+(?P<host>{_NAME})",
        rf"(?P<label>\d{{1,8}}):\s+(?P<rank>\d{{1,8}})\s+(?P<host>{_NAME})(?:\s.*)?",
        rf"\[(?P<rank>\d{{1,8}})\]\s+(?P<host>{_NAME})",
        rf"\[\d+,(?P<rank>\d{{1,8}})\]<stdout>:\s*(?P<host>{_NAME})",
    )
)


def recognise(head: str, path: str) -> bool:
    """Whether all lines that were read in full are of one kind."""
    text, _, rest = head.rpartition("\n")
    lines = head_lines(text or rest)
    kind = _kind(lines[0]) if lines else None
    return kind is not None and all(kind.fullmatch(line) for line in lines)


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The hosts of the ranks of one file.

    Raises
    ------
    InputError
        A line that cannot be read or is of another kind than the first, a rank that is twice, missing or
        labelled with another rank.
    """
    (file,) = files
    seats: dict[int, Seat] = {}
    kind: re.Pattern[str] | None = None
    for number, line in significant(file):
        kind = kind or _kind(line)
        found = kind.fullmatch(line) if kind else None
        if found is None:
            reason = "not a rank and its host" if kind is None else "not of the first line's kind"
            raise InputError(reason, path=file.path, line=number, text=line)
        rank = int(found["rank"])
        label = found.groupdict().get("label")
        if label is not None and int(label) != rank:
            reason = f"rank {rank} is labelled {label}: ranks were reordered, or the line is not its own"
            raise InputError(reason, path=file.path, line=number, text=line)
        if rank in seats:
            reason = f"rank {rank} stands twice, first in line {seats[rank].line}"
            raise InputError(reason, path=file.path, line=number, text=line)
        seats[rank] = Seat(found["host"], number)
    return Parsed(placement=by_rank(seats, file, FORMAT))


def _kind(line: str) -> re.Pattern[str] | None:
    return next((kind for kind in _KINDS if kind.fullmatch(line)), None)
