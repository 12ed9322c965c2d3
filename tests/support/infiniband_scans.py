"""Small scans as ``ibnetdiscover`` prints them, from a list of cables."""

from __future__ import annotations

from ingest.formats.fabrics import ibnetdiscover
from ingest.options import Options
from registry.model import Fabric
from tests.support.inputs import file

Cable = tuple[str, int, str, int]
"""Description and port of both ends."""


def scan_text(*cables: Cable, rate: str = "4xHDR") -> str:
    """Return the scan of these cables; descriptions that begin with ``MF0;`` or ``leaf`` are switches."""
    guid = {name: 0x1000 + 16 * k for k, name in enumerate(dict.fromkeys(n for c in cables for n in c[::2]))}
    ports: dict[str, list[str]] = {name: [] for name in guid}

    def kind(name: str) -> str:
        return "S" if str(name).startswith(("MF0;", "leaf")) else "H"

    def ident(name: str) -> str:
        return f'"{kind(name)}-{guid[name]:016x}"'

    for one, port, other, other_port in cables:
        for near, number, far, far_number in ((one, port, other, other_port), (other, other_port, one, port)):
            own = f"({guid[near] + number:x}) " if kind(near) == "H" else "\t"
            ports[near].append(f'[{number}]{own}{ident(far)}[{far_number}]\t\t# "{far}" lid 1 {rate}')
    records = ["# Topology file: generated on Tue Jun 15 19:06:08 2021\n"]
    for name, lines in ports.items():
        switch = kind(name) == "S"
        record, own = ("Switch", "switchguid") if switch else ("Ca", "caguid")
        tail = " base port 0 lid 1 lmc 0" if switch else ""
        head = f'{own}=0x{guid[name]:x}\n{record}\t64 {ident(name)}\t\t# "{name}"{tail}\n'
        records.append(head + "\n".join(lines) + "\n")
    return "\n".join(records)


def scanned(*cables: Cable, rate: str = "4xHDR") -> Fabric:
    """Return the fabric of such a scan."""
    fabric = ibnetdiscover.parse([file(scan_text(*cables, rate=rate))], Options()).fabric
    assert fabric is not None
    return fabric
