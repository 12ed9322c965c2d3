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
from collections.abc import Iterator, Sequence

from ingest.formats.placements.orders import (
    HOST,
    RankHost,
    head_lines,
    kind_of,
    lines_of_one_kind,
    placement_by_rank,
)
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

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


def _recognise_rank_list(head: str, path: str) -> bool:
    """Return True if all complete lines are of one kind."""
    text, _, rest = head.rpartition("\n")
    lines = head_lines(text or rest)
    kind = kind_of(lines[0], _KINDS) if lines else None
    return kind is not None and all(kind.fullmatch(line) for line in lines)


def _parse_rank_list(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the hosts of the ranks of one file; a rank that is labelled with another one is an error."""
    (file,) = files
    return placement_by_rank(_rows(file), file, RANK_LIST.name)


def _rows(file: SourceFile) -> Iterator[RankHost]:
    for number, found in lines_of_one_kind(file, _KINDS, "a rank and its host"):
        rank, label = int(found["rank"]), found.groupdict().get("label")
        if label is not None and int(label) != rank:
            reason = f"rank {rank} is labelled {label}: ranks were reordered, or lines were mixed"
            raise InputError(reason, path=file.path, line=number, text=found.string)
        yield RankHost(rank, found["host"], number, found.string)


RANK_LIST = Format(
    "rank-list",
    kind="placement",
    evidence="real",
    about="placement: one line per rank with its host, with or without launcher labels",
    recognise=_recognise_rank_list,
    parse=_parse_rank_list,
)
