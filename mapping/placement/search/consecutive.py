"""Consecutive ranks on each host, as torchrun and DeepSpeed start them: only the order of hosts is searched.

A group of ranks takes the place of a rank, and a host the place of a slot. Traffic within a group stays on
its host, so that both placements load the same links with the same bytes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mapping.placement.case import PlacementCase
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Ints, Placement, Profile

OPTION = "consecutive"
"""Name of the option, and of the parameter of placements that holds the number of ranks per host."""


def group_ranks(case: PlacementCase) -> PlacementCase:
    """Return a case in which a rank is a group of consecutive ranks that fills a host.

    Raises
    ------
    InvalidValue
        Hosts with different numbers of slots, or ranks that do not fill whole hosts.
    InvalidPlacement
        Ranks of one group pinned to several hosts, or a present placement whose ranks are not consecutive.
    """
    hosts, profile = case.allocation.hosts, case.profile
    each = _ranks_per_host(case)
    case.allocation.require(profile.ranks)
    groups = Profile.from_edges(
        profile.sender // each,
        profile.partner // each,
        profile.bytes,
        ranks=profile.ranks // each,
        messages=profile.messages,
        name=profile.name,
        application=profile.application,
    )
    allocation = Allocation(hosts=hosts, slots=np.ones(len(hosts), np.int32))
    pinned = _of_groups(case.pinned_hosts(), each, "pinned")
    present = case.present
    if present is not None:
        of_groups = hosts[_of_groups(case.host_indices(present), each, "now")]
        present = replace(
            present, host_of_rank=of_groups, allocation=allocation, core_of_rank=None, cpu_of_rank=None
        )
    return replace(
        case,
        profile=groups,
        allocation=allocation,
        options=replace(case.options, consecutive=False),
        pins={group: int(hosts[host]) for group, host in enumerate(pinned.tolist()) if host >= 0},
        present=present,
    )


def place_ranks(placement: Placement, case: PlacementCase) -> Placement:
    """Return the placement of a case's ranks, given that of its groups."""
    each = _ranks_per_host(case)
    return replace(
        placement,
        host_of_rank=np.repeat(placement.host_of_rank, each),
        allocation=case.allocation,
        parameters={**placement.parameters, **case.parameters, OPTION: each},
    )


def _ranks_per_host(case: PlacementCase) -> int:
    slots, names = case.allocation.slots, case.fabric.names
    each, ranks = int(slots[0]), case.profile.ranks
    other = np.flatnonzero(slots != each)
    if len(other):
        first, host = names[case.allocation.hosts[0]], names[case.allocation.hosts[other[0]]]
        raise InvalidValue(
            OPTION, f"host {host} has {slots[other[0]]} slots and {first} has {each}: all must have the same"
        )
    if ranks % each:
        raise InvalidValue(OPTION, f"{ranks} ranks do not fill whole hosts of {each} slots")
    return each


def _of_groups(host_of_rank: Ints, each: int, when: str) -> Ints:
    """Return the host of each group; -1 if no rank of it has one."""
    rows = host_of_rank.reshape(-1, each)
    found: Ints = rows.max(axis=1)
    wrong = np.flatnonzero(((rows != found[:, None]) & (rows >= 0)).any(axis=1))
    if len(wrong):
        first = int(wrong[0]) * each
        raise InvalidPlacement(
            f"ranks {first} to {first + each - 1} are {when} on several hosts: with consecutive ranks they "
            "share one"
        )
    return found
