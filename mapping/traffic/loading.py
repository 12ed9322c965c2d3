"""Loads of several jobs on one fabric: routes are built once, for all hosts that any of them uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mapping.routing.catalog import build_routes
from mapping.routing.routes import ALL_CONNECTED, Routes
from mapping.routing.traffic import HostTraffic, host_traffic
from registry.errors import InvalidPlacement
from registry.model import Bools, Fabric, Ints, Longs, Placement, Profile
from registry.model.loaded_links import LoadedLinks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobTraffic:
    """A running job: who sends what to whom, and where its ranks sit.

    Attributes
    ----------
    job, user : str
    application : str or None
    placement_id : str
        Empty for one that was not saved.
    profile : Profile
    placement : Placement
    """

    job: str
    user: str = ""
    application: str | None = None
    placement_id: str = ""
    profile: Profile
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Delivered:
    """What a job puts on the links, and what of its traffic no way is left for.

    Attributes
    ----------
    loads : LoadedLinks
    unreachable_pairs : int
        Ordered pairs of ranks that talk and that the routing does not join.
    unreachable_bytes : float
        What they send.
    """

    loads: LoadedLinks
    unreachable_pairs: int
    unreachable_bytes: float


class Loader:
    """Routes between all hosts of some placements.

    Parameters
    ----------
    fabric : Fabric
    placements : iterable of Placement
        On this fabric.
    routing : str
        With its options.
    rails : str

    Raises
    ------
    UnknownName, InvalidValue
        As `mapping.routing.catalog.build_routes`.
    InvalidPlacement
        A vertex that the fabric has not.
    """

    def __init__(
        self, fabric: Fabric, placements: Iterable[Placement], routing: str, rails: str = ALL_CONNECTED
    ) -> None:
        used = [placement.host_of_rank for placement in placements]
        hosts = np.unique(np.concatenate([np.zeros(0, np.int32), *used]))
        if len(hosts) and int(hosts[-1]) >= len(fabric):
            raise InvalidPlacement(f"vertex {int(hosts[-1])} is not in the fabric")
        self.routes: Routes = build_routes(routing, fabric, hosts, rails=rails)
        """Between these hosts, in ascending order."""

    def load(self, profile: Profile, placement: Placement) -> LoadedLinks:
        """What a job puts on the links.

        Raises
        ------
        InvalidPlacement
        DisconnectedAllocation, UnreachablePair
            Two of its hosts that talk are not joined.
        """
        traffic = host_traffic(profile, placement)
        return LoadedLinks.of(self.routes.link_bytes(*self._ends(traffic), traffic.bytes))

    def deliver(self, profile: Profile, placement: Placement, gone: Bools | None = None) -> Delivered:
        """The same, leaving out what cannot be delivered.

        Parameters
        ----------
        gone : bool[ranks], optional
            Ranks that neither send nor receive.

        Raises
        ------
        InvalidPlacement
        """
        traffic = host_traffic(profile if gone is None else without_ranks(profile, gone), placement)
        source, target = self._ends(traffic)
        joined = self._joined(source, target)
        loads = self.routes.link_bytes(source[joined], target[joined], traffic.bytes[joined])
        return Delivered(
            loads=LoadedLinks.of(loads),
            unreachable_pairs=int(traffic.rank_pairs[~joined].sum()),
            unreachable_bytes=float(traffic.bytes[~joined].sum()),
        )

    def _ends(self, traffic: HostTraffic) -> tuple[Longs, Longs]:
        at = np.searchsorted(self.routes.hosts, traffic.hosts)
        return at[traffic.source], at[traffic.target]

    def _joined(self, source: Longs, target: Longs) -> Bools:
        if len(self.routes.hosts) == 0 or self.routes.connected:
            return np.ones(len(source), np.bool_)
        group, ways = self._groups
        return ways[group[source], group[target]]

    @cached_property
    def _groups(self) -> tuple[Ints, Bools]:
        """int32[h], bool[g, g]: groups of hosts that are alike, and which are joined."""
        group, hops = self.routes.grouped_hops()
        return group, np.isfinite(hops)


def without_ranks(profile: Profile, gone: Bools) -> Profile:
    """The profile without what some ranks send and receive; the number of ranks stays."""
    sender = profile.sender
    left = ~(gone[sender] | gone[profile.partner])
    return replace(
        profile,
        indptr=np.searchsorted(sender[left], np.arange(profile.ranks + 1)),
        partner=profile.partner[left],
        bytes=profile.bytes[left],
        messages=profile.messages[left],
    )
