"""Names that hosts have lost, or that others took, kept by the GUIDs of their adapters.

After a reboot an adapter may describe itself by its model or as ``localhost``, and a machine that was set up
from a copy of another's disk has the other's name. GUIDs do not change, so that such hosts keep the names
under which their adapters are known. A new name that nobody else has is a rename, and is taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from registry.model import Bools, Fabric, Links, Ports, claimed_name, format_guid, is_made_up
from registry.model.links import LINK_COLUMNS, NO_PORT, PORT_COLUMNS

MOST = 10
"""Most hosts that are named in warnings; the others are counted."""


def host_of_guid(fabric: Fabric) -> dict[int, str]:
    """Return the name of the host of each GUID of an adapter or a port."""
    adapters = fabric.adapters
    names = [fabric.names[vertex] for vertex in adapters.host.tolist()]
    ports = zip(adapters.port_guid.tolist(), adapters.port_adapter.tolist(), strict=True)
    owner = {guid: names[adapter] for guid, adapter in ports if guid}
    return owner | {guid: name for guid, name in zip(adapters.guid.tolist(), names, strict=True) if guid}


def is_real(name: str) -> bool:
    """Return True for a name that no parser made up or made different from that of another machine."""
    return bool(name) and not is_made_up(name) and not claimed_name(name)


def doubtful(fabric: Fabric) -> Bools:
    """Return the adapters (bool[a]) whose host may have lost its name, or may be two machines of one name."""
    adapters = fabric.adapters
    names = [fabric.names[vertex] for vertex in adapters.host.tolist()]
    systems = defaultdict[tuple[str, str], set[int]](set)
    keys = list(zip(names, adapters.names, strict=True))
    for key, system, guid in zip(keys, adapters.system_guid.tolist(), adapters.guid.tolist(), strict=True):
        systems[key].add(system or guid)
    return np.array([not is_real(key[0]) or len(systems[key]) > 1 for key in keys], np.bool_)


def keep_names(fabric: Fabric, known: Mapping[int, str]) -> tuple[Fabric, tuple[str, ...]]:
    """Return the fabric in which hosts keep the names that their adapters had, and a warning for each.

    Args:
        fabric: Fabric of a scan.
        known: Last name of the host of each GUID of an adapter or port.
    """
    adapters = fabric.adapters
    claims = [fabric.names[vertex] for vertex in adapters.host.tolist()]
    kept = _kept(fabric, claims, _own_names(fabric, known))
    if kept == claims:
        return fabric, ()
    return _with_hosts(fabric, kept), tuple(_warnings(fabric, claims, kept))


def _own_names(fabric: Fabric, known: Mapping[int, str]) -> list[str]:
    """Return the known name of each adapter's host; empty if there is none that the machine had itself."""
    adapters = fabric.adapters
    guids = [[guid] for guid in adapters.guid.tolist()]
    for adapter, guid in zip(adapters.port_adapter.tolist(), adapters.port_guid.tolist(), strict=True):
        guids[adapter].append(guid)
    found = [next((known[guid] for guid in of if guid and guid in known), "") for of in guids]
    return [name if is_real(name) else "" for name in found]


def _kept(fabric: Fabric, claims: Sequence[str], own: Sequence[str]) -> list[str]:
    """Return the name of each adapter's host, from those that it claims and under which it is known."""
    switches = {fabric.names[vertex] for vertex in fabric.switches.tolist()}
    described, of_claim = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    lost = set[str]()
    for claim, name, text in zip(claims, own, fabric.adapters.names, strict=True):
        described[text].add(name)
        of_claim[claim].add(name)
        if not is_real(claim):
            lost.add(name)
    kept = []
    for claim, name, text in zip(claims, own, fabric.adapters.names, strict=True):
        wanted = name or ("" if is_real(claim) else _only(of_claim[claim]))
        if is_real(claim) and claim not in lost and len(described[text] - {""}) < 2:
            wanted = claim
        # a machine that was never seen has the name now
        elsewhere = wanted in of_claim and wanted not in of_claim[wanted] and "" in of_claim[wanted]
        free = wanted and wanted not in switches and (wanted == claim or not elsewhere)
        kept.append(wanted if free else claim)
    return kept


def _only(names: set[str]) -> str:
    """Return the only name of a set without the empty one, or no text."""
    found = names - {""}
    return next(iter(found)) if len(found) == 1 else ""


def _warnings(fabric: Fabric, claims: Sequence[str], kept: Sequence[str]) -> Iterator[str]:
    """Yield a warning for each host whose adapter describes itself by another name, up to `MOST`."""
    rows = zip(claims, kept, fabric.adapters.names, fabric.adapters.guid.tolist(), strict=True)
    found = {
        name: (text, guid) for claim, name, text, guid in rows if name not in (claim, claimed_name(claim))
    }
    for name, (text, guid) in sorted(found.items())[:MOST]:
        adapter = f"adapter {format_guid(guid)}".rstrip()
        yield f"host {name} keeps its name, as its {adapter} is known: it is described as {text!r} now"
    if len(found) > MOST:
        yield f"{len(found) - MOST} more hosts keep their names, as their adapters are known"


def _with_hosts(fabric: Fabric, host_names: Sequence[str]) -> Fabric:
    """Return the fabric with the adapters in the hosts of these names; links within a host are left out."""
    adapters, links, ports = fabric.adapters, fabric.links, fabric.ports
    with_adapters = set(adapters.host.tolist())
    source = {name: v for v, name in enumerate(fabric.names) if v not in with_adapters}
    source |= dict(zip(host_names, adapters.host.tolist(), strict=True))
    names = sorted(source)
    number = {name: at for at, name in enumerate(names)}
    old = np.array([source[name] for name in names], np.int64)
    host = np.array([number[name] for name in host_names], np.int32)
    vertex = np.array([number.get(name, 0) for name in fabric.names], np.int32)
    vertex[adapters.host[::-1]] = host[::-1]
    columns = {name: getattr(links, name) for name in LINK_COLUMNS}
    for end in ("source", "target"):
        adapter = columns[f"{end}_adapter"]
        columns[end] = np.where(adapter == NO_PORT, vertex[columns[end]], host[adapter])
    kept = columns["source"] != columns["target"]
    listed = {name: getattr(ports, name) for name in PORT_COLUMNS}
    listed["vertex"] = np.where(ports.adapter == NO_PORT, vertex[ports.vertex], host[ports.adapter])
    each: dict[str, Any] = {
        name: None if (values := getattr(fabric, name)) is None else values[old]
        for name in ("kind", "slots", "forwards", "guid", "lid", "level", "coordinates")
    }
    return replace(
        fabric,
        names=tuple(names),
        links=Links(**{name: values[kept] for name, values in columns.items()}),
        adapters=replace(adapters, host=host),
        ports=Ports(**listed),
        **each,
    )
