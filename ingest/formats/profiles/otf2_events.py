"""Sums of the messages of an OTF2 archive by sender and receiver; runs as a separate process.

The library that reads OTF2 is written in C: a damaged archive can crash only this process. Usage: ``python -I
otf2_events.py ANCHOR OUT``. OUT becomes JSON with ``ranks``, ``edges`` (source, target, bytes, messages),
``collectives`` and ``elsewhere`` (messages by other paradigms), or ``error``.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

MEMORY = 8 << 30
"""Largest address space in bytes."""


def main(anchor: str, out: str) -> None:
    """Read one archive."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        result = sums(anchor)
    except Exception as error:  # any exception of the library is reported to the caller as text
        result = {"error": str(error).strip().split("\n")[-1] or type(error).__name__}
    with open(out, "w", encoding="utf-8") as handle:
        json.dump(result, handle)


def sums(anchor: str) -> dict[str, Any]:
    """Return the content of the archive, summed by pairs of ranks of MPI_COMM_WORLD."""
    import otf2
    from otf2 import events

    total: dict[tuple[int, int], list[int]] = {}
    collectives = 0
    with otf2.reader.open(anchor) as trace:
        rank_of = _ranks(trace.definitions)
        members: dict[Any, list[int]] = {}
        for location, event in trace.events:
            if isinstance(event, events.MpiCollectiveEnd):
                collectives += 1
            if not isinstance(event, events.MpiSend | events.MpiIsend):
                continue
            source = rank_of[location.group]
            comm = event.communicator
            if comm not in members:
                if not hasattr(comm, "group"):
                    raise ValueError("a message goes through an inter-communicator, which is not supported")
                members[comm] = [rank_of[member.group] for member in comm.group.members]
            if not 0 <= event.receiver < len(members[comm]):
                raise ValueError(f"a message goes to rank {event.receiver} of {len(members[comm])}")
            pair = total.setdefault((source, members[comm][event.receiver]), [0, 0])
            pair[0] += event.msg_length
            pair[1] += 1
    edges = [[*pair, *counts] for pair, counts in sorted(total.items())]
    return {"ranks": len(set(rank_of.values())), "edges": edges, "collectives": collectives}


def _ranks(definitions: Any) -> dict[Any, int]:
    """Return the rank of each process: its index in the list of all MPI locations."""
    from otf2.enums import GroupType, Paradigm

    for group in definitions.groups:
        if group.group_type == GroupType.COMM_LOCATIONS and group.paradigm == Paradigm.MPI:
            return {location.group: rank for rank, location in enumerate(group.members)}
    raise ValueError("the archive does not list the ranks of MPI: was it recorded from an MPI program?")


if __name__ == "__main__":
    main(*sys.argv[1:])
