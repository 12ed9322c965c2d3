"""A placement as Open MPI's rankfile gives it: ``rank N=HOST slot=CPU`` a line, ``#`` begins a comment.

Seen accepted by Open MPI 4.1.4, which lets a repeated rank's last line win and refuses a file that
leaves out ranks; here both are errors. The CPUs within a host are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.formats.placements.orders import HOST, Seat, by_rank, head_lines, significant
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

FORMAT = "openmpi-rankfile"
_BEGINNING = re.compile(r"rank\s+\d+\s*=", re.A)
_LINE = re.compile(rf"rank\s+(\d{{1,8}})\s*=\s*({HOST}|\+n\d+)(?:\s+slots?\s*=\s*([\d:,*-]+))?", re.I | re.A)


def recognise(head: str, path: str) -> bool:
    """Whether the first line that is no comment seats a rank."""
    lines = head_lines(head)
    return bool(lines) and _BEGINNING.match(lines[0]) is not None


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """The hosts of the ranks of one file.

    Raises
    ------
    InputError
        A line that cannot be read; a host that is relative (``+n0``); a rank twice or missing.
    """
    (file,) = files
    seats: dict[int, Seat] = {}
    for number, line in significant(file):
        found = _LINE.fullmatch(line)
        if found is None:
            raise InputError("not `rank N=HOST slot=CPU`", path=file.path, line=number, text=line)
        rank, host = int(found.group(1)), found.group(2)
        if host.startswith("+"):
            reason = f"host {host} is relative to an allocation that the file does not tell; name the host"
            raise InputError(reason, path=file.path, line=number, text=line)
        if rank in seats:
            reason = f"rank {rank} is placed twice, first in line {seats[rank].line}"
            raise InputError(reason, path=file.path, line=number, text=line)
        seats[rank] = Seat(host, number)
    return Parsed(placement=by_rank(seats, file, FORMAT))
