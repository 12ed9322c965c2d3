"""Host lists such as ``node[0001-0008,0017],login1``, as in Slurm and ClusterShell.

ClusterShell expands them. This module keeps their order, limits their size before anything is expanded, and
accepts only names: ClusterShell alone would interpret ``@group`` as a query of the site's group files and
``a!b`` as a set operation. A single name, or one range with ends of one length, is expanded without the
library, since most jobs use nothing else.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from registry.errors import InputError

MAX_HOSTS = 250_000
"""Largest number of hosts in an expression."""
RELATIVE = re.compile(r"\+[eEnN][\d:]*")
"""Name of a node relative to Open MPI's allocation."""
NAMES_WANTED = (
    "`+n` and `+e` count the nodes, and the empty nodes, of Open MPI's allocation, which only mpirun knows: "
    "use the names of the hosts, or what `mpirun --display map` prints"
)
"""Why such a name cannot be used, and what to do."""
_PART = re.compile(r"(?:[^\s,\[\]]|\[[^\s\[\]]*\])++")
_BETWEEN = re.compile(r"[\s,]+")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
_RANGE = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?", re.ASCII)
_BRACKET_PAIRS = 8
"""Largest number of brackets in one name."""
_ONE_RANGE = re.compile(r"([^\[\]]*)\[(\d{1,12})-(\d{1,12})\]([^\[\]]*)", re.ASCII)


def expand(text: str, *, path: str | None = None, line: int | None = None) -> tuple[str, ...]:
    """Return the hosts of an expression, in its order.

    Args:
        text: Names and ranges separated by commas or white space; a name may have several ranges and
            suffixes, as in ``rack[1-2]node[01-16]-ib``. Empty text has no hosts.
        path: Path of the file, for errors.
        line: Line of the expression, for errors.

    Raises:
        InputError: An unpaired bracket, an invalid range, a character that no host name has, a name relative
            to an allocation (``+e0``), a repeated host, or more than `MAX_HOSTS` hosts.
    """
    hosts: dict[str, None] = {}
    for part in _parts(text, path, line):
        for single in _single_ranges(part, MAX_HOSTS - len(hosts), path, line):
            for host in _expand_one(single, part, path, line):
                if host in hosts:
                    raise InputError(f"host {host} is repeated", path=path, line=line, text=part)
                hosts[host] = None
    return tuple(hosts)


def _parts(text: str, path: str | None, line: int | None) -> Iterator[str]:
    """Yield the pieces between commas and blanks outside brackets."""
    position = 0
    text = text.strip()
    while position < len(text):
        found = _PART.match(text, position)
        if found is None:
            raise InputError("not a host list", path=path, line=line, text=text[position:])
        yield found.group()
        position = found.end()
        if position < len(text):
            between = _BETWEEN.match(text, position)
            if between is None:
                rest = text[found.start() :]
                raise InputError("unpaired bracket in a host list", path=path, line=line, text=rest)
            position = between.end()


def _single_ranges(part: str, room: int, path: str | None, line: int | None) -> Iterator[str]:
    """Yield the names of a part with one range per bracket: ``n[5,1-3]`` gives ``n[5]`` and ``n[1-3]``.

    Their order is kept, since ClusterShell sorts within brackets but the scheduler fills hosts in this order.
    """
    names = _BRACKETS.split(part)[::2]
    ranges = [inside.split(",") for inside in _BRACKETS.findall(part)]
    outside = "".join(names)
    if RELATIVE.fullmatch(part):
        raise InputError(f"host {part} is relative: {NAMES_WANTED}", path=path, line=line, text=part)
    if outside and not _NAME.fullmatch(outside):
        raise InputError("a character that no host name has", path=path, line=line, text=part)
    if len(ranges) > _BRACKET_PAIRS:
        raise InputError(f"more than {_BRACKET_PAIRS} brackets in a name", path=path, line=line, text=part)
    size = 1
    for choices in ranges:
        size *= sum(_range_size(choice, part, path, line) for choice in choices)
    if size > room:
        raise InputError(f"more than {MAX_HOSTS} hosts", path=path, line=line, text=part)
    for choice in itertools.product(*ranges):
        pairs = zip(names, (*(f"[{one}]" for one in choice), ""), strict=True)
        yield "".join(itertools.chain.from_iterable(pairs))


def _range_size(text: str, part: str, path: str | None, line: int | None) -> int:
    found = _RANGE.fullmatch(text)
    size = int(found.group(2) or found.group(1)) - int(found.group(1)) + 1 if found else 0
    if size < 1:
        raise InputError(f"invalid range {text!r} in a host list", path=path, line=line, text=part)
    return size


def _expand_one(single: str, part: str, path: str | None, line: int | None) -> Iterator[str]:
    """Yield the hosts of a name with one range per bracket."""
    if "[" not in single:
        yield sys.intern(single)
        return
    found = _ONE_RANGE.fullmatch(single)
    if found is not None and len(found[2]) == len(found[3]):
        before, first, last, behind = found.groups()
        for number in range(int(first), int(last) + 1):
            yield sys.intern(f"{before}{number:0{len(first)}d}{behind}")
        return
    try:
        yield from map(sys.intern, NodeSet(single, resolver=RESOLVER_NOGROUP))
    except (NodeSetException, ValueError) as error:
        raise InputError(f"invalid host list: {error}", path=path, line=line, text=part) from error
