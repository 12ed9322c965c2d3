"""Check that a scan or forwarding tables are of the cluster for which they are ingested.

A scan of another cluster would end all devices of this one and begin others. It is compared with the scan of
the cluster before it, by the identities that merging uses.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import numpy as np

from ingest.merging.identities import UNKNOWN, guids, same_vertices
from registry.errors import WrongCluster
from registry.model import HOST, Bools, Fabric, ForwardingTables
from registry.model.intake import Intake
from registry.store.fabrics import Snapshot
from registry.units import moment_text


class Scans(Protocol):
    """Methods of a registry that return fabrics of a cluster, without forwarding tables."""

    def nearest_seen(self, cluster: str, at: datetime) -> Snapshot | None:
        """Return the fabric at a time, or the first one if none was seen before; None if there is none."""

    def largest_seen(self, cluster: str) -> Snapshot | None:
        """Return the fabric with most devices of all times."""


def require_same_cluster(registry: Scans, intake: Intake) -> None:
    """Raise if the scan or the forwarding tables of an intake are of another cluster.

    Raises
    ------
    WrongCluster
        Fewer than half of the devices are in the cluster's scan before it, or a switch of tables without a
        scan is not. If that scan shows only a part of the cluster, the cluster's largest scan counts.
    """
    cluster, time = intake.cluster, intake.observed_at
    scan, tables = intake.fabric, intake.tables
    if cluster is None or time is None or (scan is None and tables is None):
        return
    before = registry.nearest_seen(cluster, time)
    if before is None:
        return
    if scan is not None:
        counts, what = _unshared(registry, before, scan), "devices of this scan"
    else:
        counts, what = _unknown_switches(registry, before, tables), "switches of these forwarding tables"
    if counts is not None:
        where = f"the scan of cluster {cluster!r} of {moment_text(before.observed_at)}"
        path = intake.files[0] if len(intake.files) == 1 else None
        raise WrongCluster(*counts, what, where, path)


def _unshared(registry: Scans, before: Snapshot, scan: Fabric) -> tuple[int, int] | None:
    """Return the number of shared and of all devices of a scan if fewer than half are shared, else None."""
    shared = shared_devices(before.fabric, scan)
    count = int(shared.sum())
    if 2 * count >= len(shared):
        return None
    if 2 * count >= len(shared_devices(scan, before.fabric)):  # the scan before shows a part of this one
        largest = registry.largest_seen(before.cluster)
        if largest is not None and 2 * shared_devices(largest.fabric, scan).sum() >= len(shared):
            return None
    return count, len(shared)


def _unknown_switches(
    registry: Scans, before: Snapshot, tables: ForwardingTables | None
) -> tuple[int, int] | None:
    """Return the number of known and of all switches of tables if some are unknown, else None."""
    if tables is None:
        return None
    known = np.isin(tables.switch_guid, before.fabric.guid)
    largest = None if known.all() else registry.largest_seen(before.cluster)
    ever = known if largest is None else known | np.isin(tables.switch_guid, largest.fabric.guid)
    return None if ever.all() else (int(known.sum()), len(known))


def shared_devices(known: Fabric, scan: Fabric) -> Bools:
    """Return True for each device of a scan that is in a known fabric, of the devices that can be compared.

    Devices are compared if both fabrics have devices of their kind. Without GUIDs in one of them (such as a
    scheduler's tree) switches often have other names, so only hosts are compared if both have some. If both
    have GUIDs and share none, equal names (node001) mean nothing.
    """
    kinds = np.intersect1d(known.kind, scan.kind)
    before, now = guids(known), guids(scan)
    if not (before and now) and HOST in kinds:
        kinds = np.array([HOST])
    found = same_vertices(known, scan) != UNKNOWN
    if before and now and before.isdisjoint(now):
        found[:] = False
    return np.asarray(found[np.isin(scan.kind, kinds)])
