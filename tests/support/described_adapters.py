"""A switch with adapters of given node descriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingest.formats.fabrics.infiniband import Device, Port, build_fabric
from registry.model import Fabric
from tests.support.inputs import fabric_in


def scan(
    *descriptions: str, systems: Mapping[int, int] | None = None, only: Sequence[int] | None = None
) -> Fabric:
    """A switch with an adapter of each description: GUID n, and system image GUID n or the one given."""
    numbers = [n for n in range(1, len(descriptions) + 1) if only is None or n in only]
    switch = Device(kind="S", guid=1000, description="leaf")
    devices = [switch]
    for n in numbers:
        port = Port(number=1, peer=1000, peer_port=n, rate=1.0, guid=100 + n)
        system = (systems or {}).get(n, n)
        devices.append(
            Device(kind="H", guid=n, system_guid=system, description=descriptions[n - 1], ports={1: port})
        )
        switch.ports[n] = Port(number=n, peer=n, peer_port=1, rate=1.0)
    return fabric_in(build_fabric(devices, path="scan", default_rate=1.0))


def owners(fabric: Fabric) -> dict[int, str]:
    """Return the host of each adapter by its GUID."""
    names = [fabric.names[host] for host in fabric.adapters.host.tolist()]
    return dict(zip(fabric.adapters.guid.tolist(), names, strict=True))
