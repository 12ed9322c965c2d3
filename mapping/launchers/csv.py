"""A placement as CSV: ``rank,host,slot`` with slots from 0 by ascending rank within a host.

If cores were chosen, the columns ``core`` and ``cpu`` follow: the core in hwloc's logical order and the
operating system's number of its first hardware thread; both are empty if the host's layout is not known.
"""

from __future__ import annotations

from collections.abc import Sequence

from registry.csv_text import csv_text
from registry.errors import InvalidPlacement
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """Return a header and one line per rank; names with commas or quotes are quoted."""
    cores = _cores(placement)
    lines: list[tuple[int | str, ...]] = []
    slots = placement.slot_of_rank.tolist()
    rows = zip(placement.host_of_rank.tolist(), slots, cores or [()] * placement.ranks, strict=True)
    for rank, (vertex, slot, core) in enumerate(rows):
        host = fabric.names[vertex]
        if not host.isprintable() or host != host.strip():
            raise InvalidPlacement(f"host name {host!r} is not allowed in the file")
        lines.append((rank, host, slot, *core))
    return csv_text(("rank", "host", "slot", *(("core", "cpu") if cores else ())), lines)


def _cores(placement: Placement) -> Sequence[tuple[int | str, ...]]:
    """Return the core and CPU of each rank, as empty text if unknown; an empty list if none were chosen."""
    if placement.core_of_rank is None or placement.cpu_of_rank is None:
        return []
    pairs = zip(placement.core_of_rank.tolist(), placement.cpu_of_rank.tolist(), strict=True)
    return [(core, cpu) if cpu >= 0 else ("", "") for core, cpu in pairs]
