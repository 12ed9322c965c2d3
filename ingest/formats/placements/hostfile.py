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

from ingest.formats.placements.orders import HOST, MAX_RANKS, head_lines, lines_of_one_kind, placement
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceFile
from registry.errors import InputError

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
    """Return the hosts of the ranks of one file; a host that is repeated with ``slots=`` is an error."""
    (file,) = files
    hosts: list[str] = []
    seen: set[str] = set()
    for number, found in lines_of_one_kind(file, _KINDS, "a host with its number of ranks"):
        host, count = found.group(1), int(found.group(2) or 1)
        if found.re is _SLOTS and host in seen:
            reason = f"host {host} is repeated with slots=: the launcher merges such lines and moves ranks"
            raise InputError(reason, path=file.path, line=number, text=found.string)
        if len(hosts) + count > MAX_RANKS:
            reason = f"places more than {MAX_RANKS} ranks"
            raise InputError(reason, path=file.path, line=number, text=found.string)
        hosts.extend([host] * count)
        seen.add(host)
    return placement(hosts, file, FORMAT)
