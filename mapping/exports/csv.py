"""A placement as CSV: ``rank,host,slot`` with slots from 0 by ascending rank within a host."""

from __future__ import annotations

import csv
import io

from registry.errors import InvalidPlacement
from registry.model import Fabric, Placement


def write(placement: Placement, fabric: Fabric) -> str:
    """A header and a line a rank; names with commas or quotes are quoted."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("rank", "host", "slot"))
    slots = placement.slot_of_rank.tolist()
    for rank, (vertex, slot) in enumerate(zip(placement.host_of_rank.tolist(), slots, strict=True)):
        host = fabric.names[vertex]
        if not host.isprintable() or host != host.strip():
            raise InvalidPlacement(f"host name {host!r} would break the file")
        writer.writerow((rank, host, slot))
    return text.getvalue()
