"""A placement as a job's own report: one line per rank with its host, in any order; ``#`` begins a comment.

The lines are printed by each rank of a program, possibly labelled by the launcher:

    3 node1                  the program's own, or LibTopoMap's file of fake hosts
    3: node1                 srun --label hostname
    3: 3 node1 more words    srun --label of a program that prints its rank and host first
    [3] node1                mpiexec -prepend-rank hostname (MPICH)
    [1,3]<stdout>:node1      mpirun --tag-output hostname (Open MPI)

A file must use one of them. Tested with Slurm 22.05, MPICH's hydra 4.0.2 and Open MPI 4.1.4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.formats.placements.orders import HOST, RankHost, by_rank, head_lines, significant
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

FORMAT = "rank-list"
_NAME = rf"(?=[^\s]*[A-Za-z]){HOST}"
"""A host's name; a number alone is ambiguous."""
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
    """Return True if all complete lines are of one kind."""
    text, _, rest = head.rpartition("\n")
    lines = head_lines(text or rest)
    kind = _kind(lines[0]) if lines else None
    return kind is not None and all(kind.fullmatch(line) for line in lines)


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the hosts of the ranks of one file.

    Raises
    ------
    InputError
        An unreadable line or one of another kind than the first, or a rank that is repeated, missing or
        labelled with another rank.
    """
    (file,) = files
    hosts_of_ranks: dict[int, RankHost] = {}
    kind: re.Pattern[str] | None = None
    for number, line in significant(file):
        kind = kind or _kind(line)
        found = kind.fullmatch(line) if kind else None
        if found is None:
            reason = "expected a rank and its host" if kind is None else "not of the first line's kind"
            raise InputError(reason, path=file.path, line=number, text=line)
        rank = int(found["rank"])
        label = found.groupdict().get("label")
        if label is not None and int(label) != rank:
            reason = f"rank {rank} is labelled {label}: ranks were reordered, or lines were mixed"
            raise InputError(reason, path=file.path, line=number, text=line)
        if rank in hosts_of_ranks:
            reason = f"rank {rank} is repeated, first in line {hosts_of_ranks[rank].line}"
            raise InputError(reason, path=file.path, line=number, text=line)
        hosts_of_ranks[rank] = RankHost(found["host"], number)
    return Parsed(placements=(by_rank(hosts_of_ranks, file, FORMAT),))


def _kind(line: str) -> re.Pattern[str] | None:
    return next((kind for kind in _KINDS if kind.fullmatch(line)), None)
