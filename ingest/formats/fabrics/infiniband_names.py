"""Names of an InfiniBand fabric's vertices: what a switch is called, which machine holds an adapter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ingest.formats.fabrics.infiniband_devices import Device
from registry.errors import InputError
from registry.model import format_guid

_NAMELESS = re.compile(
    r"(MT\d+|Mellanox|ConnectX\S*|InfiniHost|localhost(\.localdomain\S*)?|\(none\))(\s|$)"
    r"|(HCA-\d+|mlx\d+_\d+|mthca\d+|hfi1_\d+|qib\d+|ib\w*\d+)$"
)


def vertex_names(devices: Sequence[Device], path: str) -> dict[int, str]:
    """Name of the vertex of each device, by node GUID; the adapters of a host share one."""
    names = _host_names([device for device in devices if device.kind == "H"])
    others = [device for device in devices if device.kind != "H"]
    taken = Counter(set(names.values()))
    taken.update(device.description for device in others)
    used = set(names.values())
    for device in others:
        guid = format_guid(device.guid)
        name = device.description or f"guid-{guid}"
        if taken[device.description] > 1 and device.description:
            name = f"{name} [{guid}]"
        if name in used:
            reason = f"another device is already called {name!r}"
            raise InputError(reason, path=path, line=device.line, text=device.text)
        used.add(name)
        names[device.guid] = name
    return names


def _host_names(adapters: Sequence[Device]) -> dict[int, str]:
    """Name of the host of each adapter, by node GUID.

    A host's name is the description up to the first blank. An adapter without a machine's name in its
    description (its model, its own device name, ``localhost``) belongs to the machine that has a named
    adapter with the same system image GUID; failing that, to all the nameless ones with that GUID.
    """
    named: dict[int, set[str]] = {}
    names: dict[int, str] = {}
    nameless = []
    for adapter in adapters:
        if not adapter.description or _NAMELESS.match(adapter.description):
            nameless.append(adapter)
            continue
        name = adapter.description.split(maxsplit=1)[0]
        names[adapter.guid] = name
        named.setdefault(adapter.system_guid, set()).add(name)
    for adapter in nameless:
        system = adapter.system_guid
        owners = named.get(system, set()) if system else set()
        own = (
            f"guid-{format_guid(system or adapter.guid)}"
            if system or adapter.guid > 0
            else f"lid{adapter.guid}"
        )
        names[adapter.guid] = next(iter(owners)) if len(owners) == 1 else own
    return names
