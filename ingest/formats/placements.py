"""Placements in files and reports of launchers; no ranks, or a missing or repeated rank, are errors."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ingest.formats.hostlists import NAMES_WANTED, RELATIVE
from ingest.options import Options
from ingest.parsed import Format, Parse, Parsed, counted
from ingest.reading.source import SourceFile
from registry.csv_text import without_guard
from registry.errors import InputError
from registry.model import HostOrder

HOST = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
"""Pattern of a host's name in a launcher's file."""
MAX_RANKS = 1 << 24


class RankHost(NamedTuple):
    """A rank and its host, with the number and text of the line in the file.

    In a file that may repeat a report, `binding` is what must be the same in each, and `part` what the line
    belongs to, such as a process or a host's block: a rank is once in each part.
    """

    rank: int
    host: str
    line: int
    text: str | None = None
    binding: str = ""
    part: str = ""


def significant(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines with content, without comments and outer blanks."""
    for number, line in enumerate(file.lines(), start=1):
        text = line.partition("#")[0].strip()
        if text:
            yield number, text


def head_lines(head: str, limit: int = 100) -> list[str]:
    """Return the first lines with content, without comments and outer blanks."""
    texts = (line.partition("#")[0].strip() for line in head.split("\n"))
    return list(itertools.islice((text for text in texts if text), limit))


def kind_of(line: str, kinds: Sequence[re.Pattern[str]]) -> re.Pattern[str] | None:
    """Return the first pattern that a line matches."""
    return next((kind for kind in kinds if kind.fullmatch(line)), None)


def lines_of_one_kind(
    file: SourceFile, kinds: Sequence[re.Pattern[str]], expected: str
) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the number and match of each line with content; all must be of the kind of the first line.

    Raises:
        InputError: The first line is of no kind (it is not what is `expected`), or a line is of another kind.
    """
    kind: re.Pattern[str] | None = None
    for number, line in significant(file):
        kind = kind or kind_of(line, kinds)
        found = kind.fullmatch(line) if kind else None
        if found is None:
            reason = f"expected {expected}" if kind is None else "not of the first line's kind"
            raise InputError(reason, path=file.path, line=number, text=line)
        yield number, found


def placement(hosts: Sequence[str], file: SourceFile, format: str) -> Parsed:
    """Return the placement of ranks 0, 1, ... on these hosts; raise `InputError` if there are none."""
    if not hosts:
        raise InputError("no ranks found", path=file.path)
    return Parsed(placements=(HostOrder(hosts=tuple(hosts), source=format, name=file.path),))


def placement_by_rank(
    rows: Iterable[RankHost], file: SourceFile, format: str, *, repeats: bool = False
) -> Parsed:
    """Return a placement from ranks in any order.

    Args:
        file: File of the rows, for errors.
        format: Name of the format.
        repeats: True to accept a rank again in another part, on the same host with the same binding.

    Raises:
        InputError: There are no ranks, or a rank is repeated or missing.
    """
    found: dict[int, RankHost] = {}
    parts: set[tuple[int, str]] = set()
    for row in rows:
        first = found.setdefault(row.rank, row)
        same = (first.host, first.binding) == (row.host, row.binding) and (row.rank, row.part) not in parts
        parts.add((row.rank, row.part))
        if first is not row and not (repeats and same):
            reason = f"rank {row.rank} is repeated on {row.host}, first in line {first.line} on {first.host}"
            raise InputError(reason, path=file.path, line=row.line, text=row.text)
    ranks = max(found, default=-1) + 1
    if ranks > len(found):
        missing = next(rank for rank in range(ranks) if rank not in found)
        reason = f"{ranks - len(found)} of {ranks} ranks are missing, rank {missing} first"
        raise InputError(reason, path=file.path, line=found[ranks - 1].line)
    return placement([found[rank].host for rank in range(ranks)], file, format)


def by_rank(rows: Callable[[SourceFile], Iterable[RankHost]], format: str, *, repeats: bool = False) -> Parse:
    """Return the parser of a format whose rows are ranks with their hosts."""
    return lambda files, options: placement_by_rank(rows(files[0]), files[0], format, repeats=repeats)


def filled(file: SourceFile, options: Options, listed: Sequence[tuple[str, int]] = ()) -> tuple[str, ...]:
    """Return the host of each slot, hosts in the order in which a launcher fills them.

    Args:
        file: The file, for errors.
        options: Hosts and slots given by the caller.
        listed: Hosts and slots in the file; empty if it has none.

    Raises:
        InputError: Neither the file nor the caller has hosts, or both do and differ.
    """
    counts = options.slots * len(options.hosts) if len(options.slots) == 1 else options.slots
    given = tuple(zip(options.hosts, counts, strict=True))
    if not given and not listed:
        reason = "contains no hosts: give them with --hosts, and --slots if a host has more than one rank"
        raise InputError(reason, path=file.path)
    if given and listed and given != tuple(listed):
        raise InputError("the hosts or slots in the file differ from those given", path=file.path)
    return tuple(host for host, count in given or listed for _ in range(count))


_PLAIN = re.compile(rf"({HOST})()")
_COUNTED = re.compile(rf"({HOST}):(\d{{1,8}})(?:\s+binding=user:[\d,+]+)?", re.A)
_SLOTS = re.compile(rf"({HOST})\s+slots\s*=\s*(\d{{1,8}})(?:\s+max[-_]slots\s*=\s*\d{{1,8}})?", re.A)
_ADDED = "Open MPI adds up the slots of such lines, and the host takes its ranks where it is first named"
_HOST_LINES = (_PLAIN, _COUNTED, _SLOTS)


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
    for number, found in lines_of_one_kind(file, _HOST_LINES, "a host with its number of ranks"):
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


_PREFIX = r"\[0\] MPI startup\(\): "
_TITLE = re.compile(_PREFIX + r"Rank\s+Pid\s+Node name\s+Pin cpu\s*")
_ROW = re.compile(_PREFIX + rf"(\d{{1,8}})\s+(\d+)\s+({HOST})\s+(\{{?[\d,+-].*)", re.A)
_OTHER_ROW = re.compile(_PREFIX + r"\d+\s", re.A)


def _recognise_intel_mpi_map(head: str, path: str) -> bool:
    """Return True if a line is the title of the table."""
    return any(_TITLE.fullmatch(line.rstrip("\r")) for line in head.split("\n"))


def _intel_rows(file: SourceFile) -> Iterator[RankHost]:
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
    parse=by_rank(_intel_rows, "intel-mpi-map"),
)
"""Placement of a job by Intel MPI, printed with ``I_MPI_DEBUG=4`` or more.

The table follows the title ``[0] MPI startup(): Rank    Pid      Node name  Pin cpu``; other text, such as
the program's output, may be between and around its rows. Long lists of CPUs continue in further lines. CPUs
are ignored. Source: published outputs of Intel MPI 2018 to 2021.
"""


_LIST = re.compile(r"\d{1,8}(?:-\d{1,8})?(?:(?:\s*,\s*|\s+)\d{1,8}(?:-\d{1,8})?)*+\s*,?", re.A)
_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.A)
_HOSTS = re.compile(r"#\s*hosts((?:\s+" + HOST + r"\*\d{1,8})++)\s*", re.A)
_HOST_SLOTS = re.compile(r"(\S+)\*(\d+)", re.A)


def _recognise_mpich_rank_order(head: str, path: str) -> bool:
    """Return True if all lines are lists of ranks, and no rank is repeated among the first ones.

    A matrix of numbers repeats some number, at least on its diagonal.
    """
    lines = head.split("\n")
    texts = [line.partition("#")[0].strip() for line in (lines[:-1] if len(lines) > 1 else lines)]
    texts = [text for text in texts if text]
    if not texts or not any("," in text or "-" in text for text in texts):
        return False
    if not all(_LIST.fullmatch(text) for text in texts):
        return False
    ends = [int(digits) for text in texts for digits in re.findall(r"\d+", text, re.A)]
    return len(set(ends)) == len(ends)


def _parse_mpich_rank_order(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the hosts of the ranks of one file.

    More ranks than slots, and other hosts in the file than those given by the caller, are errors.
    """
    (file,) = files
    return placement_by_rank(
        _slot_rows(file, filled(file, options, _hosts(file))), file, MPICH_RANK_ORDER.name
    )


def _slot_rows(file: SourceFile, slots: Sequence[str]) -> Iterator[RankHost]:
    """Yield the rank of each slot with the host of the slot."""
    free = iter(slots)
    for number, text in significant(file):
        if _LIST.fullmatch(text) is None:
            reason = "expected a list of ranks separated by commas"
            raise InputError(reason, path=file.path, line=number, text=text)
        for found in _RANGE.finditer(text):
            first, last = int(found[1]), int(found[2] or found[1])
            if last < first or last >= MAX_RANKS:
                raise InputError("invalid range of ranks", path=file.path, line=number, text=found[0])
            for rank in range(first, last + 1):
                host = next(free, None)
                if host is None:
                    reason = f"more ranks than slots of the hosts ({len(slots)})"
                    raise InputError(reason, path=file.path, line=number)
                yield RankHost(rank, host, number)


def _hosts(file: SourceFile) -> tuple[tuple[str, int], ...]:
    """Return the hosts and slots in a comment; empty if there is no such comment."""
    for number, line in enumerate(file.lines(), start=1):
        found = _HOSTS.fullmatch(line.strip())
        if found is not None:
            hosts = tuple((host, int(count)) for host, count in _HOST_SLOTS.findall(found[1]))
            if sum(count for _, count in hosts) > MAX_RANKS:
                raise InputError(f"more than {MAX_RANKS} slots", path=file.path, line=number, text=line)
            return hosts
    return ()


MPICH_RANK_ORDER = Format(
    "mpich-rank-order",
    kind="placement",
    evidence="public",
    about="placement: MPICH_RANK_ORDER of HPE Cray MPICH; needs --hosts",
    recognise=_recognise_mpich_rank_order,
    parse=_parse_mpich_rank_order,
)
"""A placement as MPICH_RANK_ORDER of HPE Cray MPICH: the rank of each slot, hosts in order.

The file has ranks and ranges of ranks (``0-3``) separated by commas, blanks or line ends; ``#`` begins a
comment. It lists the ranks for the slots of the first host, then of the second, but not the hosts: these are
in a comment ``# hosts a*2 b*2``, which `mapping.launchers` writes, or must be given with
``almanac ingest --hosts``. Other launchers' lists contain the host of each rank; this is their inverse.
Source: HPE's documentation of MPICH_RANK_REORDER_METHOD, and published output of its grid_order.
"""


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


def _map_rows(file: SourceFile) -> Iterator[RankHost]:
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
    parse=by_rank(_map_rows, "openmpi-map", repeats=True),
)
"""Placement of a job by Open MPI, as reported by its launcher.

Two reports are read: ``mpirun --display-map`` or ``--display-devel-map`` (``Data for node: HOST`` and the
processes below it), and ``--report-bindings`` (``[HOST:pid] MCW rank N bound to ...``, on standard error).
Open MPI 5 and PRRTE's ``prterun`` call them ``--display map`` and ``--display bind``, write ``Rank N`` and
name a job ``prterun-HOST-PID@1``. Output of the program may be between these lines. Each daemon repeats the
map, so it may occur several times: all must agree. A rank is once in a host's block, and once in what a
process reports. These reports do not contain relative names and ranks of
spawned jobs. Tested with Open MPI 4.1.4; the lines of Open MPI 5 follow PRRTE's source and published outputs.
"""


_BEGINNING = re.compile(r"rank\s+\d+\s*=", re.A)
_LINE = re.compile(
    rf"rank\s+(\d{{1,8}})\s*=\s*({HOST}|{RELATIVE.pattern})(?:\s+slots?\s*=\s*([\d:,*-]+))?", re.I | re.A
)


def _recognise_openmpi_rankfile(head: str, path: str) -> bool:
    """Return True if the first line except comments places a rank."""
    lines = head_lines(head)
    return bool(lines) and _BEGINNING.match(lines[0]) is not None


def _rankfile_rows(file: SourceFile) -> Iterator[RankHost]:
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
    parse=by_rank(_rankfile_rows, "openmpi-rankfile"),
)
"""A placement as Open MPI's rankfile: one line ``rank N=HOST slot=CPU`` per rank, ``#`` begins a comment.

Tested with Open MPI 4.1.4, which uses the last line of a repeated rank and rejects a file with missing ranks;
here both are errors. The CPUs within a host are ignored.
"""


_NEEDED = ("rank", "host")
_RANK = re.compile(r"\d{1,8}", re.A)


def _recognise_placement_csv(head: str, path: str) -> bool:
    """Return True if the first line except comments has the column names."""
    lines = head_lines(head)
    return bool(lines) and set(_NEEDED) <= set(_names(lines[0].split(",")))


def _csv_rows(file: SourceFile) -> Iterator[RankHost]:
    """Yield the rank and host of each row after the column names."""
    reader = csv.reader(io.StringIO(file.text(), newline=""))
    names: list[str] = []
    try:
        for cells in reader:
            text = ",".join(cells)
            if not cells or (not names and cells[0].startswith("#")):
                continue
            if names:
                fault, row = "", dict(zip(names, (cell.strip() for cell in cells), strict=False))
                if len(cells) != len(names):
                    fault = f"{len(cells)} cells, but there are {len(names)} columns"
                elif not _RANK.fullmatch(row["rank"]):
                    fault = "rank is not a whole number of at most 8 digits"
                elif not row["host"]:
                    fault = "host has no name"
                if fault:
                    raise InputError(fault, path=file.path, line=reader.line_num, text=text)
                yield RankHost(int(row["rank"]), without_guard(row["host"]), reader.line_num, text)
                continue
            names = _names(cells)
            for name in _NEEDED:
                if names.count(name) != 1:
                    reason = f"expected one column {name}"
                    raise InputError(reason, path=file.path, line=reader.line_num, text=text)
    except csv.Error as error:
        raise InputError(f"invalid CSV: {error}", path=file.path, line=reader.line_num) from error


def _names(cells: Sequence[str]) -> list[str]:
    return [cell.strip().strip('"').lower() for cell in cells]


PLACEMENT_CSV = Format(
    "placement-csv",
    kind="placement",
    evidence="own",
    about="placement: CSV with columns rank,host",
    recognise=_recognise_placement_csv,
    parse=by_rank(_csv_rows, "placement-csv"),
)
"""A placement as a CSV file with the columns ``rank,host``, as written by `almanac export --format csv`.

Further columns, such as ``slot``, are ignored. Columns and rows may be in any order.
"""


_NAME = rf"(?=[^\s]*[A-Za-z]){HOST}"
"""A host's name; a number alone is ambiguous."""
_LINES = tuple(
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
    kind = kind_of(lines[0], _LINES) if lines else None
    return kind is not None and all(kind.fullmatch(line) for line in lines)


def _list_rows(file: SourceFile) -> Iterator[RankHost]:
    for number, found in lines_of_one_kind(file, _LINES, "a rank and its host"):
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
    parse=by_rank(_list_rows, "rank-list"),
)
"""A placement as a job's own report: one line per rank with its host, in any order; ``#`` begins a comment.

The lines are printed by each rank of a program, possibly labelled by the launcher:

    3 node1                  the program's own, or LibTopoMap's file of fake hosts
    3: node1                 srun --label hostname
    3: 3 node1 more words    srun --label of a program that prints its rank and host first
    [3] node1                mpiexec -prepend-rank hostname (MPICH)
    [1,3]<stdout>:node1      mpirun --tag-output hostname (Open MPI)

A file must use one of them. Tested with Slurm 22.05, MPICH's hydra 4.0.2 and Open MPI 4.1.4.
"""
