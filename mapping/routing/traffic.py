"""From the traffic of ranks to the traffic of the hosts that they sit on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Floats, Ints, Longs, Placement, Profile


class HostTraffic(NamedTuple):
    """What hosts send to each other.

    Attributes
    ----------
    hosts : int32[h]
        Vertices that have ranks, ascending.
    source, target : int64[pairs]
        Indices into `hosts`; ordered, without repeats; a host's traffic with itself is left out.
    bytes : float64[pairs]
    rank_pairs : float64[pairs]
        Ordered pairs of ranks that talk; a pair that sends no bytes counts.
    messages : float64[pairs]
        0 where the profile does not tell them.
    packets : float64[pairs]
        By `packets`; empty where no size of a packet was given.
    total_messages : float
        Those within hosts too; nan where a pair sends bytes in an unknown number of messages.
    """

    hosts: Ints
    source: Longs
    target: Longs
    bytes: Floats
    rank_pairs: Floats
    messages: Floats
    packets: Floats
    total_messages: float


def host_traffic(profile: Profile, placement: Placement, *, packet_bytes: float | None = None) -> HostTraffic:
    """Traffic between hosts, ranks of one host taken together.

    Parameters
    ----------
    packet_bytes : float, optional
        Size of a packet, to count packets too.

    Raises
    ------
    InvalidPlacement
        The placement is for another number of ranks.
    InvalidValue
        Packets of no size.
    """
    if placement.ranks != profile.ranks:
        raise InvalidPlacement(f"the placement has {placement.ranks} ranks, the profile {profile.ranks}")
    hosts, host = np.unique(placement.host_of_rank, return_inverse=True)
    source, target = host[profile.sender], host[profile.partner]
    apart = source != target
    pairs, inverse = np.unique(source[apart] * len(hosts) + target[apart], return_inverse=True)

    def summed(values: Floats | None) -> Floats:
        weights = None if values is None else values[apart]
        return np.bincount(inverse, weights=weights, minlength=len(pairs)).astype(np.float64)

    unknown = (profile.messages == 0) & (profile.bytes > 0)
    return HostTraffic(
        hosts=hosts,
        source=pairs // len(hosts),
        target=pairs % len(hosts),
        bytes=summed(profile.bytes),
        rank_pairs=summed(None),
        messages=summed(profile.messages.astype(np.float64)),
        packets=np.zeros(0) if packet_bytes is None else summed(packets(profile, packet_bytes)),
        total_messages=float("nan") if bool(unknown.any()) else float(profile.messages.sum()),
    )


def packets(profile: Profile, packet_bytes: float) -> Floats:
    """float64[e]: packets that each ordered pair of ranks sends.

    Messages are split into packets of one size (Orduña, Silla and Duato 2004, section 2). A recording
    tells the messages and bytes of a pair, not the size of each message: as many packets are counted as
    its bytes fill, and no fewer than its messages.

    Raises
    ------
    InvalidValue
    """
    if not (np.isfinite(packet_bytes) and packet_bytes > 0):
        raise InvalidValue("packets.packet_bytes", f"{packet_bytes:g} is not above zero")
    return np.maximum(np.ceil(profile.bytes / packet_bytes), profile.messages.astype(np.float64))
