"""From the traffic of ranks to the traffic of the hosts that they sit on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from registry.errors import InvalidPlacement
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
    """

    hosts: Ints
    source: Longs
    target: Longs
    bytes: Floats


def host_traffic(profile: Profile, placement: Placement) -> HostTraffic:
    """Traffic between hosts, ranks of one host taken together.

    Raises
    ------
    InvalidPlacement
        The placement is for another number of ranks.
    """
    if placement.ranks != profile.ranks:
        raise InvalidPlacement(f"the placement has {placement.ranks} ranks, the profile {profile.ranks}")
    hosts, host = np.unique(placement.host_of_rank, return_inverse=True)
    source, target = host[profile.sender], host[profile.partner]
    apart = source != target
    pairs, inverse = np.unique(source[apart] * len(hosts) + target[apart], return_inverse=True)
    return HostTraffic(
        hosts=hosts,
        source=pairs // len(hosts),
        target=pairs % len(hosts),
        bytes=np.bincount(inverse, weights=profile.bytes[apart], minlength=len(pairs)).astype(np.float64),
    )
