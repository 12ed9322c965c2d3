"""A placement as the order of hosts in a launcher's host file: ranks fill the lines from the top.

Three kinds of lines are known; a file must use one of them. ``#`` begins a comment:

    node1            one rank: Open MPI's sequential mapping, Slurm's SLURM_HOSTFILE, MPICH
    node1:2          two ranks: MPICH's machine file; `binding=user:4,0` may follow and is ignored
    node1 slots=2    two ranks: Open MPI's host file with its default mapping by slot

Hosts may be repeated, except with ``slots=``: Open MPI adds up the slots of such lines, and the host takes
its ranks where it is first named. By slot, its default mapping, it does so with plain lines, too: a warning
names them. Names relative to an allocation (``+n0``, ``+e``) are errors. Tested with Open MPI 4.1.4, MPICH's
hydra and Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ingest.formats.jobs.hostlists import NAMES_WANTED, RELATIVE
from ingest.formats.placements.orders import (
    HOST,
    MAX_RANKS,
    head_lines,
    lines_of_one_kind,
    placement,
    significant,
)
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.source import SourceFile
from registry.errors import InputError

_PLAIN = re.compile(rf"({HOST})()")
_COUNTED = re.compile(rf"({HOST}):(\d{{1,8}})(?:\s+binding=user:[\d,+]+)?", re.A)
_SLOTS = re.compile(rf"({HOST})\s+slots\s*=\s*(\d{{1,8}})(?:\s+max[-_]slots\s*=\s*\d{{1,8}})?", re.A)
_ADDED = "Open MPI adds up the slots of such lines, and the host takes its ranks where it is first named"
_KINDS = (_PLAIN, _COUNTED, _SLOTS)


def _recognise_hostfile(head: str, path: str) -> bool:
    """Return True if all lines are of one kind; a single bare word is not enough."""
    lines = head_lines(head)
    if lines and (_COUNTED.fullmatch(lines[0]) or _SLOTS.fullmatch(lines[0])):
        return True
    if lines and RELATIVE.fullmatch(lines[0].split()[0]):
        return True
    return len(lines) > 1 and all(_PLAIN.fullmatch(line) and not line.isdigit() for line in lines)


def _parse_hostfile(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the hosts of the ranks of one file; a host that is repeated with ``slots=`` is an error."""
    (file,) = files
    _refuse_relative(file)
    hosts: list[str] = []
    seen: set[str] = set()
    again: list[tuple[str, int]] = []
    for number, found in lines_of_one_kind(file, _KINDS, "a host with its number of ranks"):
        host, count = found.group(1), int(found.group(2) or 1)
        if found.re is _SLOTS and host in seen:
            reason = f"host {host} is repeated with slots=: {_ADDED}: write one line with the sum"
            raise InputError(reason, path=file.path, line=number, text=found.string)
        if found.re is _PLAIN and host in seen and host != hosts[-1]:
            again.append((host, number))
        if len(hosts) + count > MAX_RANKS:
            reason = f"places more than {MAX_RANKS} ranks"
            raise InputError(reason, path=file.path, line=number, text=found.string)
        hosts.extend([host] * count)
        seen.add(host)
    parsed = placement(hosts, file, HOSTFILE.name)
    if not again:
        return parsed
    host, number = again[0]
    order = "ranks follow the lines, as with MPICH, srun and Open MPI's `--map-by seq`; by slot, its default"
    rest = f"an earlier line ({host} in line {number} first): {order}, {_ADDED}"
    warnings = counted((len(again), "line repeats the host of", "lines repeat the hosts of", rest))
    return replace(parsed, warnings=(*parsed.warnings, *warnings))


def _refuse_relative(file: SourceFile) -> None:
    """Raise `InputError` for a host that is named relative to an allocation."""
    for number, line in significant(file):
        host = line.split(maxsplit=1)[0]
        if RELATIVE.fullmatch(host):
            reason = f"host {host} is relative: {NAMES_WANTED}"
            raise InputError(reason, path=file.path, line=number, text=line)


HOSTFILE = Format(
    "hostfile",
    kind="placement",
    evidence="real",
    about="placement: host file of Open MPI, Slurm or MPICH, hosts in the order of ranks",
    recognise=_recognise_hostfile,
    parse=_parse_hostfile,
)
