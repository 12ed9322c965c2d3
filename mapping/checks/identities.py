"""Names, GUIDs and LIDs that two devices share, so that tools and tables mistake one for the other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from mapping.checks.finding import Finding, Severity, Subject, some
from registry.model import HOST, Fabric, Guids, Ints, claimed_name, format_guid, is_made_up
from registry.model.host_names import without_domain


def find(subject: Subject) -> Iterator[Finding]:
    """Return findings for names of several devices, and for GUIDs or LIDs of several adapters or ports."""
    fabric = subject.fabric
    yield from _descriptions(fabric)
    yield from _unnamed(fabric)
    yield from _described(fabric)
    adapters = fabric.adapters
    owner = [adapters.names[adapter] for adapter in adapters.port_adapter.tolist()]
    devices = np.concatenate((adapters.guid, fabric.guid[fabric.switches]))
    names = [*adapters.names, *(fabric.names[vertex] for vertex in fabric.switches.tolist())]
    yield from _repeated(devices, names, "node GUID")
    yield from _repeated(adapters.port_guid, owner, "port GUID")
    yield from _lids(fabric, owner)


def _descriptions(fabric: Fabric) -> Iterator[Finding]:
    """Return findings for names that readers of files made different by a GUID."""
    same: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for name, kind in zip(fabric.names, fabric.kind.tolist(), strict=True):
        if claimed := claimed_name(name):
            same[claimed, kind == HOST].append(name.removeprefix(claimed).strip(" []"))
    for (description, host), guids in sorted(same.items()):
        text = f"{len(guids)} {'hosts' if host else 'switches'} have the name {description}: {some(guids)}"
        yield Finding(Severity.WARNING, description, text, len(guids))


def _unnamed(fabric: Fabric) -> Iterator[Finding]:
    """Return one finding for all adapters without a machine's name."""
    names = [fabric.names[vertex] for vertex in fabric.unnamed.tolist()]
    if names:
        text = f"{len(names)} adapters have no machine's name and count as hosts of their own: {some(names)}"
        yield Finding(Severity.NOTE, names[0], text, len(names), group="unnamed")


def _described(fabric: Fabric) -> Iterator[Finding]:
    """Return findings for hosts whose adapters describe another host or none, so that GUIDs identify them.

    There are none in a fabric whose adapters' descriptions do not start with the names of their hosts.
    """
    adapters = fabric.adapters
    own = [without_domain(claimed_name(name) or name) for name in fabric.names]
    described = [without_domain(text.split(maxsplit=1)[0]) if text.strip() else "" for text in adapters.names]
    rows = list(zip(adapters.host.tolist(), described, adapters.names, adapters.guid.tolist(), strict=True))
    right = {host: guid for host, name, _, guid in reversed(rows) if name == own[host]}
    if 2 * len(right) < len(set(adapters.host.tolist()) - set(fabric.unnamed.tolist())):
        return
    owner = {own[host]: f"{fabric.names[host]} ({format_guid(guid)})" for host, guid in right.items()}
    twice, lost = defaultdict[str, dict[int, str]](dict), dict[int, str]()
    for host, name, description, guid in rows:
        if name != own[host] and name in owner:
            twice[name].setdefault(host, f"{fabric.names[host]} ({format_guid(guid)})")
        elif host not in right and not is_made_up(fabric.names[host]):
            lost.setdefault(host, f"{fabric.names[host]} ({format_guid(guid)}, {description!r})")
    for name, others in sorted(twice.items()):
        who = some([owner[name], *others.values()])
        reason = f"{len(others) + 1} hosts describe themselves as {name}: {who}"
        yield Finding(Severity.WARNING, name, reason, len(others) + 1)
    if lost:
        reason = f"{len(lost)} hosts are known by their GUIDs only, not by their descriptions: "
        subject = fabric.names[next(iter(lost))]
        yield Finding(
            Severity.NOTE, subject, reason + some([*lost.values()]), len(lost), group="descriptions"
        )


def _repeated(guids: Guids, names: list[str], what: str) -> Iterator[Finding]:
    values, counts = np.unique(guids[guids > 0], return_counts=True)
    for guid in values[counts > 1].tolist():
        owners = [names[index] for index in np.flatnonzero(guids == guid).tolist()]
        text = f"{what} {format_guid(guid)} belongs to {len(owners)} devices: {some(owners)}"
        yield Finding(Severity.ERROR, format_guid(guid), text, len(owners))


def _lids(fabric: Fabric, owner: list[str]) -> Iterator[Finding]:
    """Return findings for LIDs that two ports own, including all LIDs of a port by its LMC."""
    adapters = fabric.adapters
    first: Ints = adapters.port_lid
    taken: dict[int, list[str]] = defaultdict(list)
    repeated = Counter(first[first > 0].tolist())
    wide = bool((adapters.port_lmc > 0).any())
    if not wide and max(repeated.values(), default=1) == 1 and not _with_switch(fabric):
        return
    for port in np.flatnonzero(first > 0).tolist():
        for lid in range(int(first[port]), int(first[port]) + (1 << int(adapters.port_lmc[port]))):
            taken[lid].append(owner[port])
    for vertex in np.flatnonzero(fabric.lid > 0).tolist():
        taken[int(fabric.lid[vertex])].append(fabric.names[vertex])
    for lid, owners in sorted(taken.items()):
        if len(owners) > 1:
            text = f"LID {lid} belongs to {len(owners)} ports: {some(owners)}"
            yield Finding(Severity.ERROR, f"LID {lid}", text, len(owners))


def _with_switch(fabric: Fabric) -> bool:
    """Return True if a switch has the LID of an adapter port or of another switch."""
    of_switches = fabric.lid[fabric.lid > 0]
    shared = np.intersect1d(of_switches, fabric.adapters.port_lid)
    return len(np.unique(of_switches)) < len(of_switches) or len(shared) > 0
