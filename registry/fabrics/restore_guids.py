"""Restore adapter GUIDs that a source lacks from earlier observations.

Some tools print the GUIDs of ports but not of adapters. If an earlier observation of the cluster has an
adapter with the same port, it is the same adapter; otherwise a scan by another tool would look as if all
cables of hosts had been replaced. Only what cannot change is restored: GUIDs, the LIDs of a port with the
same first LID, and the name of a host that the tool had to make up.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import numpy as np

from registry.database.driver import Database, Transaction
from registry.fabrics.observations import content_as_of, read_content
from registry.model import HOST, Adapters, Fabric, is_made_up
from registry.model.intake import Intake


def restore_guids(database: Database, intake: Intake) -> Intake:
    """Return the intake with adapter GUIDs restored from the last observation at or before its time."""
    cluster, at, fabric = intake.cluster, intake.observed_at, intake.fabric
    if cluster is None or at is None or fabric is None or not _without_guid(fabric.adapters).any():
        return intake
    known = database.read(lambda transaction: _last(transaction, cluster, at))
    return intake if known is None else replace(intake, fabric=restore_known_guids(fabric, known))


def restore_known_guids(fabric: Fabric, known: Fabric) -> Fabric:
    """Return the fabric with GUIDs of `known` for adapters that have the same ports.

    Parameters
    ----------
    fabric : Fabric
        New fabric; adapters with a GUID are not changed.
    known : Fabric
        Earlier fabric.
    """
    now, before = fabric.adapters, known.adapters
    port_of = {guid: p for p, guid in enumerate(before.port_guid.tolist()) if guid}
    missing = _without_guid(now)
    guid, system, lmc = now.guid.copy(), now.system_guid.copy(), now.port_lmc.copy()
    names = list(fabric.names)
    taken = set(names)
    for port, port_guid in enumerate(now.port_guid.tolist()):
        adapter = int(now.port_adapter[port])
        was = port_of.get(port_guid)
        if was is None or not missing[adapter]:
            continue
        owner = int(before.port_adapter[was])
        guid[adapter] = before.guid[owner]
        system[adapter] = system[adapter] or before.system_guid[owner]
        if now.port_lid[port] == before.port_lid[was]:
            lmc[port] = lmc[port] or before.port_lmc[was]
        host, name = int(now.host[adapter]), known.names[before.host[owner]]
        if fabric.kind[host] == HOST and is_made_up(names[host]) and name not in taken:
            taken.add(name)
            names[host] = name
    adapters = replace(now, guid=guid, system_guid=system, port_lmc=lmc)
    return replace(fabric, names=tuple(names), adapters=adapters)


def _without_guid(adapters: Adapters) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the adapters without a GUID as bool[a]."""
    return np.asarray(adapters.guid == 0)


def _last(transaction: Transaction, cluster: str, at: datetime) -> Fabric | None:
    found = content_as_of(transaction, cluster, at)
    return None if found is None else read_content(transaction, found[1])
