"""Placement of a job by Intel MPI, printed with ``I_MPI_DEBUG=4`` or more.

The table follows the title ``[0] MPI startup(): Rank    Pid      Node name  Pin cpu``; other text, such as
the program's output, may be between and around its rows. Long lists of CPUs continue in further lines. CPUs
are ignored. Source: published outputs of Intel MPI 2018 to 2021.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ingest.formats.placements.orders import HOST, RankHost, placement_by_rank
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

_PREFIX = r"\[0\] MPI startup\(\): "
_TITLE = re.compile(_PREFIX + r"Rank\s+Pid\s+Node name\s+Pin cpu\s*")
_ROW = re.compile(_PREFIX + rf"(\d{{1,8}})\s+(\d+)\s+({HOST})\s+(\{{?[\d,+-].*)", re.A)
_OTHER_ROW = re.compile(_PREFIX + r"\d+\s", re.A)


def _recognise_intel_mpi_map(head: str, path: str) -> bool:
    """Return True if a line is the title of the table."""
    return any(_TITLE.fullmatch(line.rstrip("\r")) for line in head.split("\n"))


def _parse_intel_mpi_map(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the hosts of the ranks of one output."""
    (file,) = files
    return placement_by_rank(_rows(file), file, INTEL_MPI_MAP.name)


def _rows(file: SourceFile) -> Iterator[RankHost]:
    within = False
    for number, line in enumerate(file.lines(), start=1):
        if _TITLE.fullmatch(line):
            within = True
        elif within and (row := _ROW.fullmatch(line)) is not None:
            yield RankHost(int(row[1]), row[3], number, line)
        elif within and _OTHER_ROW.match(line):
            reason = "expected a row of rank, process, host and CPUs"
            raise InputError(reason, path=file.path, line=number, text=line)


INTEL_MPI_MAP = Format(
    "intel-mpi-map",
    kind="placement",
    evidence="public",
    about="placement: output of Intel MPI with I_MPI_DEBUG=4",
    recognise=_recognise_intel_mpi_map,
    parse=_parse_intel_mpi_map,
)
