"""A placement as Open MPI's rankfile: one line ``rank N=HOST slot=CPU`` per rank, ``#`` begins a comment.

Tested with Open MPI 4.1.4, which uses the last line of a repeated rank and rejects a file with missing ranks;
here both are errors. The CPUs within a host are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ingest.formats.jobs.hostlists import NAMES_WANTED, RELATIVE
from ingest.formats.placements.orders import HOST, RankHost, head_lines, placement_by_rank, significant
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

_BEGINNING = re.compile(r"rank\s+\d+\s*=", re.A)
_LINE = re.compile(
    rf"rank\s+(\d{{1,8}})\s*=\s*({HOST}|{RELATIVE.pattern})(?:\s+slots?\s*=\s*([\d:,*-]+))?", re.I | re.A
)


def _recognise_openmpi_rankfile(head: str, path: str) -> bool:
    """Return True if the first line except comments places a rank."""
    lines = head_lines(head)
    return bool(lines) and _BEGINNING.match(lines[0]) is not None


def _parse_openmpi_rankfile(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the hosts of the ranks of one file; relative hosts (``+n0``) are errors."""
    (file,) = files
    return placement_by_rank(_rows(file), file, OPENMPI_RANKFILE.name)


def _rows(file: SourceFile) -> Iterator[RankHost]:
    for number, line in significant(file):
        found = _LINE.fullmatch(line)
        if found is None:
            raise InputError("expected `rank N=HOST slot=CPU`", path=file.path, line=number, text=line)
        host = found.group(2)
        if host.startswith("+"):
            reason = f"host {host} is relative: {NAMES_WANTED}"
            raise InputError(reason, path=file.path, line=number, text=line)
        yield RankHost(int(found.group(1)), host, number, line)


OPENMPI_RANKFILE = Format(
    "openmpi-rankfile",
    kind="placement",
    evidence="real",
    about="placement: Open MPI's rankfile",
    recognise=_recognise_openmpi_rankfile,
    parse=_parse_openmpi_rankfile,
)
