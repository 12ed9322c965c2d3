"""Myrinet in SCore's PM-II configuration: hosts on switch ports, and cables between ports.

A line is ``number host switch.port`` for a host, ``switch a.p b.q`` for a cable, or ``search ...`` for the
order in which routes are searched, which is ignored. ``#`` begins a comment. Switches have numbers, and are
named ``switch0``, ``switch1``, ... here.

The output of Myricom's ``fm_db2wirelist`` is not read, since its syntax is not public. Source: the
documentation of SCore's PM-II.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingest.formats.fabrics.draft import Draft
from ingest.options import Options
from ingest.parsed import Format, Parsed, counted
from ingest.reading.source import Place, SourceFile
from registry.errors import InputError

_END = r"(\d{1,5})\.(\d{1,3})"
_HOST = re.compile(rf"\s*(\d{{1,7}})\s+([A-Za-z0-9_.-]+)\s+{_END}\s*", re.ASCII)
_CABLE = re.compile(rf"\s*switch\s+{_END}\s+{_END}\s*", re.ASCII)
_SEARCH = re.compile(r"\s*search(\s+\d{1,5})++\s*", re.ASCII)

End = tuple[int, int]


def _recognise_myrinet_pm(head: str, path: str) -> bool:
    """Return True if there is a cable between switches, and all whole lines are of the format."""
    lines = [line.split("#", 1)[0].rstrip("\r") for line in head.split("\n")[:-1] or [head]]
    given = [line for line in lines if line.strip()]
    patterns = (_HOST, _CABLE, _SEARCH)
    return any(_CABLE.fullmatch(line) for line in given) and all(
        any(pattern.fullmatch(line) for pattern in patterns) for line in given
    )


def _parse_myrinet_pm(files: Sequence[SourceFile], options: Options) -> Parsed:
    """Return the fabric of one configuration; a missing number of a host is an error."""
    (file,) = files
    draft = Draft()
    taken: dict[End, Place] = {}
    numbers: set[int] = set()
    searches = 0
    for place in file.places():
        bare = place.text.split("#", 1)[0]
        if (host := _HOST.fullmatch(bare)) is not None:
            if int(host[1]) in numbers or host[2] in draft.vertices:
                raise place.error("the host or its number is repeated")
            numbers.add(int(host[1]))
            switch, port = _end(host[3], host[4], taken, draft, place)
            draft.host(host[2], place)
            draft.cable(f"switch{switch}", host[2], a_port=port)
        elif (cable := _CABLE.fullmatch(bare)) is not None:
            a = _end(cable[1], cable[2], taken, draft, place)
            b = _end(cable[3], cable[4], taken, draft, place)
            draft.cable(f"switch{a[0]}", f"switch{b[0]}", a_port=a[1], b_port=b[1])
        elif _SEARCH.fullmatch(bare) is not None:
            searches += 1
        elif bare.strip():
            raise place.error("expected a host, a cable of a switch or a search line")
    if not numbers or max(numbers) != len(numbers) - 1:
        raise InputError("host numbers are missing: the file seems truncated", path=file.path)
    notes = counted((searches, "search line is", "search lines are", "ignored"))
    return draft.parsed(file.path, options, warnings=notes)


def _end(switch: str, port: str, taken: dict[End, Place], draft: Draft, place: Place) -> End:
    """Return a port of a switch; raise `InputError` if it is in use."""
    end = int(switch), int(port)
    if end in taken:
        raise place.error(f"port {end[0]}.{end[1]} already has a cable in line {taken[end].line}")
    taken[end] = place
    draft.switch(f"switch{end[0]}", place)
    return end


MYRINET_PM = Format(
    "myrinet-pm",
    kind="fabric",
    evidence="public",
    about="Myrinet: configuration of SCore's PM-II",
    recognise=_recognise_myrinet_pm,
    parse=_parse_myrinet_pm,
)
