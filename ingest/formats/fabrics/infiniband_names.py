"""Names of the hosts and switches of an InfiniBand scan, from the node descriptions of their devices.

A host is a machine and its channel adapters are its rails. Node descriptions show which adapters belong to
one machine. Two machines may claim one name, such as one that was set up from a copy of the other's disk: a
machine has each of its devices' names once, so adapters with one description are in different machines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from registry.errors import list_names
from registry.model import format_guid

if TYPE_CHECKING:
    from ingest.formats.fabrics.infiniband import Device

LONGEST_DESCRIPTION = 64
"""Bytes of a node description; a longer name of a host or device is cut off."""
_NAMELESS = re.compile(
    r"(MT_?\d+|MC[XB]\d\S*|MBF\d\S*|Mellanox|NVIDIA|ConnectX\S*|BlueField\S*|InfiniHost|Intel|Omni-Path"
    r"|localhost(\.localdomain\S*)?|\(none\))(\s|$)"
    r"|(HCA-\d+|mlx\d+_\d+|mthca\d+|hfi1_\d+|qib\d+|ib\w*\d+)$"
)


def vertex_names(devices: Sequence[Device]) -> tuple[dict[int, str], list[str]]:
    """Return the name of each device's vertex by node GUID, one for all adapters of a host, and warnings."""
    hosts = [device for device in devices if device.kind == "H"]
    names = _host_names(hosts)
    warnings = _set_apart(hosts, names)
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
            raise device.place.error(f"another device already has the name {name!r}")
        used.add(name)
        names[device.guid] = name
    return names, warnings


def _set_apart(adapters: Sequence[Device], names: dict[int, str]) -> list[str]:
    """Name the machines that claim one name by a GUID, too, and return a warning for each such name."""
    claimants: dict[str, dict[int, list[Device]]] = {}
    for adapter in adapters:
        system = adapter.system_guid or adapter.guid
        claimants.setdefault(names[adapter.guid], {}).setdefault(system, []).append(adapter)
    warnings = []
    for name, systems in claimants.items():
        machine = _machines(systems)
        first = {at: system for system, at in reversed(machine.items())}
        if len(first) < 2:
            continue
        label = {at: format_guid(system) if system > 0 else f"lid{system}" for at, system in first.items()}
        for system, members in systems.items():
            names |= {adapter.guid: f"{name} [{label[machine[system]]}]" for adapter in members}
        who = list_names([label[at] for at in sorted(label)])
        warnings.append(f"{len(first)} machines claim the name {name}: each is a host of its own ({who})")
    return warnings


def _machines(systems: Mapping[int, Sequence[Device]]) -> dict[int, int]:
    """Return the machine of each system image GUID among the adapters of one name: 0, and 1 for a second one.

    A description of one word, or one that may be cut off, contains no device. Ports of different numbers may
    be of one device if the scan prints GUIDs of ports only.
    """
    counted: Counter[tuple[str, int]] = Counter()
    machine: dict[int, int] = {}
    for system, adapters in sorted(systems.items()):
        devices = {
            (adapter.description, number)
            for adapter in adapters
            for number in (adapter.ports if adapter.anonymous else (0,))
            if len(adapter.description.split()) > 1
            and len(adapter.description.encode()) < LONGEST_DESCRIPTION - 1
            and not _NAMELESS.match(adapter.description)
        }
        machine[system] = max((counted[device] for device in devices), default=0)
        counted |= Counter(dict.fromkeys(devices, machine[system] + 1))
    return machine


def _host_names(adapters: Sequence[Device]) -> dict[int, str]:
    """Return the name of each adapter's host, by node GUID.

    The name of a host is the description up to the first blank. An adapter whose description has no machine's
    name (its model, its own device name, ``localhost``) belongs to the machine of a named adapter with the
    same system image GUID, or else to one machine with all nameless adapters of that GUID.
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
        if len(owners) == 1:
            names[adapter.guid] = next(iter(owners))
        elif system or adapter.guid > 0:
            names[adapter.guid] = f"guid-{format_guid(system or adapter.guid)}"
        else:
            names[adapter.guid] = f"lid{adapter.guid}"
    return names
