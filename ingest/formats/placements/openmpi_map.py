"""Placement of a job by Open MPI, as reported by its launcher.

Two reports are read: ``mpirun --display-map`` or ``--display-devel-map`` (``Data for node: HOST`` and the
processes below it), and ``--report-bindings`` (``[HOST:pid] MCW rank N bound to ...``, on standard error).
Open MPI 5 and PRRTE's ``prterun`` call them ``--display map`` and ``--display bind``, write ``Rank N`` and
name a job ``prterun-HOST-PID@1``. Output of the program may be between these lines. Each daemon repeats the
map, so it may occur several times: all must agree. A rank is once in a host's block, and once in what a
process reports. These reports do not contain relative names and ranks of
spawned jobs. Tested with Open MPI 4.1.4; the lines of Open MPI 5 follow PRRTE's source and published outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ingest.formats.placements.orders import HOST, RankHost, placement_by_rank
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

_NODE = re.compile(rf"\s*Data for node: ({HOST})\s+(?:Num slots|Num procs|State|Launch id)\b.*")
_PROCESS = re.compile(
    r"\s*Process (?:OMPI )?jobid: (\[\d+,\d+\]|[^\s\[\]]+@\d+) (?:App: \d+ )?Process rank: (\d{1,8})\b.*",
    re.A,
)
_PROC = re.compile(r"\s*Data for proc: \[(\[\d+,\d+\]|[^\s\[\],]+@\d+),(\d{1,8})\]\s*", re.A)
_BOUND = re.compile(
    rf"\[({HOST})(?::(\d+))?\] (?:MCW rank|Rank) (\d{{1,8}}) ((?:is not bound|bound to)\b.*)", re.A
)


def _recognise_openmpi_map(head: str, path: str) -> bool:
    """Return True if a line is one of a map or of a report of bindings."""
    lines = head.split("\n")
    if any(_BOUND.fullmatch(line.rstrip("\r")) for line in lines):
        return True
    return ("Data for JOB " in head or " JOB MAP " in head) and any(
        _NODE.fullmatch(line.rstrip("\r")) for line in lines
    )


def _parse_openmpi_map(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the hosts of the ranks of one report; a process outside any node, and two jobs, are errors."""
    (file,) = files
    return placement_by_rank(_rows(file), file, OPENMPI_MAP.name, repeats=True)


def _rows(file: SourceFile) -> Iterator[RankHost]:
    """Yield each rank with its host, as often as it occurs in the file."""
    host: str | None = None
    block = ""
    jobs: set[str] = set()
    for number, line in enumerate(file.lines(), start=1):
        if (bound := _BOUND.fullmatch(line)) is not None:
            name, process, rank, binding = bound.groups()
            yield RankHost(int(rank), name, number, line, binding.rstrip(), f"process {process or number}")
        elif (node := _NODE.fullmatch(line)) is not None:
            host, block = node[1], f"block {number}"
        elif (placed := _PROCESS.fullmatch(line) or _PROC.fullmatch(line)) is not None:
            if host is None:
                raise InputError("a process outside of any node", path=file.path, line=number, text=line)
            jobs.add(placed[1])
            if len(jobs) > 1:
                raise InputError("maps of two jobs", path=file.path, line=number, text=line)
            yield RankHost(int(placed[2]), host, number, line, part=block)


OPENMPI_MAP = Format(
    "openmpi-map",
    kind="placement",
    evidence="real",
    about="placement: output of Open MPI's --display-map or --report-bindings",
    recognise=_recognise_openmpi_map,
    parse=_parse_openmpi_map,
)
