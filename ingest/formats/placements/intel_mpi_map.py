"""Where Intel MPI put the ranks of a job: what it prints with ``I_MPI_DEBUG=4`` or more.

The table under ``[0] MPI startup(): Rank    Pid      Node name  Pin cpu``; everything else, the program's
output too, may stand between and around its rows. Long lists of CPUs go on in further lines. The CPUs are not
kept. Source: outputs of Intel MPI 2018 to 2021 as published.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.formats.placements.orders import HOST, Seat, by_rank
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

FORMAT = "intel-mpi-map"
_SAYS = r"\[0\] MPI startup\(\): "
_TITLE = re.compile(_SAYS + r"Rank\s+Pid\s+Node name\s+Pin cpu\s*")
_ROW = re.compile(_SAYS + rf"(\d{{1,8}})\s+(\d+)\s+({HOST})\s+(\{{?[\d,+-].*)", re.A)
_OTHER_ROW = re.compile(_SAYS + r"\d+\s", re.A)


def recognise(head: str, path: str) -> bool:
    """Whether a line is the table's title."""
    return any(_TITLE.fullmatch(line.rstrip("\r")) for line in head.split("\n"))


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The hosts of the ranks of one output.

    Raises
    ------
    InputError
        No table, a row that cannot be read, a rank twice or missing.
    """
    (file,) = files
    seats: dict[int, Seat] = {}
    within = False
    for number, line in enumerate(file.lines(), start=1):
        if _TITLE.fullmatch(line):
            within = True
            continue
        row = _ROW.fullmatch(line) if within else None
        if row is None:
            if within and _OTHER_ROW.match(line):
                reason = "not a row of rank, process, host and CPUs"
                raise InputError(reason, path=file.path, line=number, text=line)
            continue
        rank = int(row[1])
        if rank in seats:
            reason = f"rank {rank} stands twice, first in line {seats[rank].line}"
            raise InputError(reason, path=file.path, line=number, text=line)
        seats[rank] = Seat(row[3], number)
    return Parsed(placement=by_rank(seats, file, FORMAT))
