"""Cables of an InfiniBand scan that are slow for the models of their ends, by the device ids of the scan.

A device id names a chip. Cards of one chip differ in speed, so a chip has the speed of its generation and the
lowest rate at which it is sold (or, of a switch, its ports are split). Source: PCI ids of vendor 0x15b3 and
the manufacturer's data sheets.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ingest.rates import link_rate
from registry.model.links import FAR_BELOW, MANY, NEARLY_ALL

if TYPE_CHECKING:
    from ingest.formats.fabrics.infiniband import Device, Port


class Model(NamedTuple):
    """Rate of four lanes of a chip's generation, and the lowest usual one of its ports, in data bytes/s."""

    best: float
    lowest: float


_FDR, _EDR, _HDR, _NDR, _XDR = (link_rate(4, speed) for speed in ("FDR", "EDR", "HDR", "NDR", "XDR"))
_QDR, _HDR100, _NDR100, _NDR200 = (
    link_rate(lanes, speed) for lanes, speed in ((4, "QDR"), (2, "HDR"), (1, "NDR"), (2, "NDR"))
)
_OF_FDR, _OF_EDR, _OF_HDR = Model(_FDR, _QDR), Model(_EDR, _FDR), Model(_HDR, min(_EDR, _HDR100))
_OF_NDR, _OF_XDR = Model(_NDR, min(_EDR, _NDR100)), Model(_XDR, _NDR200)
MODELS: Mapping[int, Model] = MappingProxyType(
    {
        **dict.fromkeys((0x1003, 0x1007, 0x1011, 0xC738), _OF_FDR),  # ConnectX-3, -3 Pro, Connect-IB, SwitchX
        **dict.fromkeys((0x1013, 0x1017, 0x1019, 0xA2D2), _OF_EDR),  # ConnectX-4, -5, -5 Ex, BlueField
        **dict.fromkeys((0xCB20, 0xCF08), _OF_EDR),  # Switch-IB, Switch-IB 2
        **dict.fromkeys((0x101B, 0xA2D6, 0xD2F0), _OF_HDR),  # ConnectX-6, BlueField-2, Quantum
        **dict.fromkeys((0x1021, 0xA2DC, 0xD2F2), _OF_NDR),  # ConnectX-7, BlueField-3, Quantum-2
        **dict.fromkeys((0x1023, 0xD2F4), _OF_XDR),  # ConnectX-8, Quantum-3
    }
)
"""Models by device id, of the vendor `VENDOR`."""
UNKNOWN = Model(0.0, 0.0)
"""Any other model: no cable is slow for it."""
VENDOR = 0x2C9
"""Vendor id that scans print for these models."""


def model_of(vendor: int, device: int) -> int:
    """Return one number for a vendor id, 0 if it is not printed, and a device id."""
    return device if vendor in (0, VENDOR) else vendor << 32 | device


def possible_rates(devices: Mapping[int, Device]) -> Iterator[tuple[Device, Port, float]]:
    """Yield each end of a slow cable, with the data bytes/s at which it could run.

    A cable is slow if it is below the lowest rate of both models, or far below nearly all other cables
    between the same two models, wherever they are, or if nearly all of these are below the speed of both.
    """
    between: dict[tuple[int, int], list[tuple[Device, Port, float]]] = defaultdict(list)
    for device in devices.values():
        for port in device.ports.values():
            peer = devices[port.peer]
            if device.model and peer.model and port.rate is not None:
                pair = min(device.model, peer.model), max(device.model, peer.model)
                between[pair].append((device, port, port.rate))
    for (one, other), ends in between.items():
        first, second = MODELS.get(one, UNKNOWN), MODELS.get(other, UNKNOWN)
        best, lowest = min(first.best, second.best), min(first.lowest, second.lowest)
        (usual, count), *_ = Counter(rate for *_, rate in ends).most_common(1)
        if count < NEARLY_ALL * len(ends):
            usual = 0.0
        all_below = len(ends) >= 2 * MANY and 0 < usual < best
        for device, port, rate in ends:
            if rate < lowest or (all_below and rate <= usual):
                yield device, port, best
            elif rate <= FAR_BELOW * usual:
                yield device, port, usual
