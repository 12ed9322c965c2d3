"""A placement as the order of hosts in a launcher's host file: ranks fill the lines from the top.

Three kinds of lines are known; a file must use one of them. ``#`` begins a comment:

    node1            one rank: Open MPI's sequential mapping, Slurm's SLURM_HOSTFILE, MPICH
    node1:2          two ranks: MPICH's machine file; `binding=user:4,0` may follow and is ignored
    node1 slots=2    two ranks: Open MPI's host file with its default mapping by slot

Hosts may be repeated, except with ``slots=``: Open MPI merges such lines, which moves ranks. Tested with Open
MPI 4.1.4, MPICH's hydra and Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.formats.placements.orders import HOST, MAX_RANKS, head_lines, significant
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError
from registry.model import HostOrder

FORMAT = "hostfile"
_PLAIN = re.compile(rf"({HOST})()")
_COUNTED = re.compile(rf"({HOST}):(\d{{1,8}})(?:\s+binding=user:[\d,+]+)?", re.A)
_SLOTS = re.compile(rf"({HOST})\s+slots\s*=\s*(\d{{1,8}})(?:\s+max[-_]slots\s*=\s*\d{{1,8}})?", re.A)
_KINDS = (_PLAIN, _COUNTED, _SLOTS)


def recognise(head: str, path: str) -> bool:
    """Return True if all lines are of one kind; a single bare word is not enough."""
    lines = head_lines(head)
    if lines and (_COUNTED.fullmatch(lines[0]) or _SLOTS.fullmatch(lines[0])):
        return True
    return len(lines) > 1 and all(_PLAIN.fullmatch(line) and not line.isdigit() for line in lines)


def parse(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the hosts of the ranks of one file.

    Raises
    ------
    InputError
        An unreadable line or one of another kind than the first, a host repeated with ``slots=``, no ranks,
        or too many.
    """
    (file,) = files
    hosts: list[str] = []
    seen: set[str] = set()
    kind: re.Pattern[str] | None = None
    for number, line in significant(file):
        kind = kind or next((kind for kind in _KINDS if kind.fullmatch(line)), None)
        found = kind.fullmatch(line) if kind else None
        if found is None:
            reason = (
                "expected a host with its number of ranks" if kind is None else "not of the first line's kind"
            )
            raise InputError(reason, path=file.path, line=number, text=line)
        host, count = found.group(1), int(found.group(2) or 1)
        if kind is _SLOTS and host in seen:
            reason = f"host {host} is repeated with slots=: the launcher merges such lines and moves ranks"
            raise InputError(reason, path=file.path, line=number, text=line)
        if len(hosts) + count > MAX_RANKS:
            raise InputError(f"places more than {MAX_RANKS} ranks", path=file.path, line=number, text=line)
        hosts.extend([host] * count)
        seen.add(host)
    if not hosts:
        raise InputError("no ranks found", path=file.path)
    return Parsed(placements=(HostOrder(hosts=tuple(hosts), source=FORMAT),))
