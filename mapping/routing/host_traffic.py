"""Traffic between hosts, summed from the traffic between their ranks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from registry.errors import InvalidValue, WrongRanks
from registry.model import Floats, Ints, Longs, Placement, Profile


class HostTraffic(NamedTuple):
    """Traffic between the hosts of a placement.

    Attributes
    ----------
    hosts : int32[h]
        Vertices that have ranks, ascending.
    source, target : int64[pairs]
        Indices into `hosts`; ordered and unique; traffic within a host is left out.
    bytes : float64[pairs]
    rank_pairs : float64[pairs]
        Ordered pairs of ranks that communicate, including pairs that send no bytes.
    messages : float64[pairs]
        Messages of each pair; 0 if the profile has none.
    packets : float64[pairs]
        Packets by `packets`; empty if no packet size was given.
    total_messages : float
        All messages, including those within hosts; NaN if a pair sends bytes in an unknown number of
        messages.
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
    """Return the traffic between hosts, summed over the ranks of each host.

    Parameters
    ----------
    packet_bytes : float, optional
        Size of a packet, to count packets too.

    Raises
    ------
    InvalidPlacement
        The placement has another number of ranks.
    InvalidValue
        The packet size is not above zero.
    """
    if placement.ranks != profile.ranks:
        raise WrongRanks(placement.ranks, profile.ranks)
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
    """Return the packets (float64[e]) that each ordered pair of ranks sends.

    Messages are split into packets of one size (Orduña, Silla and Duato 2004, section 2). A profile has the
    messages and bytes of a pair but not the size of each message. Counted are the packets that its bytes
    fill, and at least one per message.

    Raises
    ------
    InvalidValue
    """
    if not (np.isfinite(packet_bytes) and packet_bytes > 0):
        raise InvalidValue("packets.packet_bytes", f"{packet_bytes:g} is not above zero")
    return np.maximum(np.ceil(profile.bytes / packet_bytes), profile.messages.astype(np.float64))
