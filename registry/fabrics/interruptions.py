"""Cables that vanished from the scans of a period, from the derived graph."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

from registry.database.driver import Transaction
from registry.model.interruption import Interruption

_CHANGED_LINKS = """
MATCH (a:Device)-[l:LINK]->(b:Device)
WHERE a.cluster = $cluster AND l.valid_from <= $until AND l.valid_to > $start
  AND (l.valid_from > $start OR l.valid_to <= $until)
RETURN l.valid_from AS valid_from, l.valid_to AS valid_to,
       collect([a.name, l.src_port, l.src_guid, b.name, l.dst_port, l.dst_guid, l.twin]) AS links
"""

_Ends = tuple[Any, ...]
"""Name, port and adapter at both ends of a link, and its number among equal ones."""


def read_interruptions(
    transaction: Transaction, cluster: str, start: datetime, until: datetime
) -> tuple[Interruption, ...]:
    """Return the cables that vanished after `start` and until `until`, by their ends.

    A cable that comes back at once with another speed did not vanish.
    """
    came: defaultdict[_Ends, set[datetime]] = defaultdict(set)
    went: defaultdict[_Ends, set[datetime]] = defaultdict(set)
    for row in transaction.run(_CHANGED_LINKS, cluster=cluster, start=start, until=until):
        for link in row["links"]:
            ends = tuple(link)
            came[ends].add(row["valid_from"])
            if start < row["valid_to"] <= until:
                went[ends].add(row["valid_to"])
    times = {ends: len(gone - came[ends]) for ends, gone in went.items()}
    found = []
    for name, port, guid, other, other_port, other_guid, twin in sorted(
        ends for ends in times if times[ends]
    ):
        ends, back = (name, port, guid), (other, other_port, other_guid)
        if ends < back or (*back, *ends, twin) not in times:
            count = times[*ends, *back, twin]
            found.append(
                Interruption(source=name, source_port=port, target=other, target_port=other_port, times=count)
            )
    return tuple(found)
