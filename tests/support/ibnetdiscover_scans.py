"""Helpers of the ibnetdiscover tests: real scans, a small generated one, and ways to change it."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.writers import fat_tree, ibnetdiscover_text
from registry.model import Fabric
from registry.model.fabric import ENDS
from tests.support import inputs

TREE = ibnetdiscover_text(fat_tree(2, 3, 2, cables=2))
"""Two leaves of three hosts each, two cables to each of two spines: 14 cables."""


def raw(name: str) -> str:
    return inputs.read(name).decode()


def read(text: str, options: Options | None = None) -> Parsed:
    return inputs.parse(IBNETDISCOVER, text, options, path="scan")


def fabric_of(text: str, options: Options | None = None) -> Fabric:
    return inputs.fabric_of(IBNETDISCOVER, text, options, path="scan")


def swap(text: str, pattern: str, by: str | Callable[[re.Match[str]], str]) -> str:
    """Replace a pattern everywhere in the text; it must occur."""
    changed, count = re.subn(pattern, by, text, flags=re.MULTILINE)
    assert count
    return changed


def same(one: Fabric, other: Fabric) -> bool:
    """Return True if two fabrics have the same vertices, cables and adapter ports."""
    columns = ("source", "target", "capacity", *(f"{end}_{of}" for end in ENDS for of in ("port", "adapter")))
    pairs = [(getattr(one.links, name), getattr(other.links, name)) for name in columns]
    owned = ("port_guid", "port_lid")
    pairs += [(getattr(one.adapters, name), getattr(other.adapters, name)) for name in owned]
    return one.names == other.names and all(np.array_equal(*pair) for pair in pairs)


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
    return fabric_of(scan_text(*cables, rate=rate))
