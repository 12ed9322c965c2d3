"""Merging of all sources of one ingest into one `Intake`, with checks between them.

All files of one ingest are one observation of one cluster. Each kind of data is merged by its row of
`registry.store.saving.KINDS`. Several sources of the fabric are merged by `ingest.merging.fabrics`, each
filling in what the others lack; forwarding tables must belong to the fabric.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

import numpy as np

from ingest.merging.fabrics import REPRESENTING, SourceFabric, differences, merge_fabrics
from ingest.merging.identities import UNKNOWN, guids, same_vertices
from ingest.options import Options
from ingest.parsed import Parsed, counted
from ingest.reading.source import SourceGroup
from registry.errors import ConfigError, InputError, PoorerSource, UnknownName, WrongCluster
from registry.model import (
    HOST,
    NO_ROUTE,
    Bools,
    Fabric,
    ForwardingTables,
    IntendedWiring,
    as_utc,
    format_guid,
)
from registry.model.intake import WITHOUT_CLUSTER, IngestedData, Intake
from registry.store.fabrics import Snapshot
from registry.store.saving import KINDS
from registry.units import moment_text

_ACTION = re.compile(r": (it is (kept|added|left out)|the first is taken)$")
"""End of a line: what merging does about a disagreement. A comparison merges nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """One source after parsing."""

    group: SourceGroup
    """Files of the source."""
    format: str
    """Name of the format."""
    parsed: Parsed
    """Data of the source."""


def merge(sources: Sequence[Source], options: Options) -> Intake:
    """Return one intake with the data of all sources.

    The time of the observation is the caller's; by default that of the scan; by default that of the youngest
    file that describes the fabric.

    Raises:
        ConfigError: No cluster is given but the data need one; one name for several profiles.
        InputError: Fabrics that have nothing in common, or two observations of one fabric by the same tool; a
            source that is incomplete alone; two sets of tables.
        UnknownName: A switch of the tables that the fabric does not have.
    """
    warnings = [f"{source.group.path}: {warning}" for source in sources for warning in source.parsed.warnings]
    fabric, disagreements = _fabric([source for source in sources if source.parsed.fabric is not None])
    warnings += disagreements
    values = {
        kind.name: kind.merge([(one.group.path, getattr(one.parsed, kind.name)) for one in sources])
        for kind in KINDS
        if kind.name != "fabric"
    }
    data = _with_options(IngestedData(fabric=fabric, **values), options)
    if data.tables is not None and fabric is not None:
        source = next(source for source in sources if source.parsed.tables is not None)
        warnings += [f"{source.group.path}: {line}" for line in _check(fabric, data.tables, source)]
    warnings += _check_plan(sources, data.intended, options)
    if not options.cluster and data.kinds().keys() - WITHOUT_CLUSTER:
        raise ConfigError("--cluster", "add --cluster NAME: only profiles can be stored without a cluster")
    return Intake(
        **data.kinds(),
        cluster=options.cluster or None,
        observed_at=_observed_at(sources, options),
        source=", ".join(dict.fromkeys(source.format for source in sources)),
        files=tuple(source.group.path for source in sources),
        files_at=options.time(max(file.modified_at for one in sources for file in one.group.files)),
        warnings=tuple(warnings),
        digest=_digest(sources),
        strict=options.strict,
    )


def _check_plan(sources: Sequence[Source], plan: IntendedWiring | None, options: Options) -> list[str]:
    """Return warnings about the intended wiring of all files; raise `InputError` for them if strict."""
    if plan is None:
        return []
    conflicts = plan.conflict_lines()
    if conflicts and options.strict:
        paths = [source.group.path for source in sources if source.parsed.intended is not None]
        raise InputError(conflicts[0], path=", ".join(paths))
    listed = sum(len(one.parsed.intended) for one in sources if one.parsed.intended is not None)
    return (
        counted((listed - len(plan), "cable is", "cables are", "in several files of the intended wiring"))
        + conflicts
    )


def _source_fabrics(sources: Sequence[Source]) -> list[SourceFabric]:
    """Return the fabric of each source that has one."""
    return [
        SourceFabric(path=source.group.path, fabric=source.parsed.fabric, assumed=source.parsed.assumed)
        for source in sources
        if source.parsed.fabric is not None
    ]


def _with_options(data: IngestedData, options: Options) -> IngestedData:
    """Return the data with the name of the profile and the job of the placements that the caller gave."""
    profiles = data.profiles
    if options.name is not None:
        if len(profiles) != 1:
            reason = (
                f"--name names one profile, but the files contain {len(profiles)}: ingest them one by one"
            )
            raise ConfigError("--name", reason)
        profiles = (replace(profiles[0], name=options.name),)
    placements = tuple(replace(order, job=options.job or order.job) for order in data.placements)
    return replace(data, profiles=profiles, placements=placements)


def _fabric(sources: Sequence[Source]) -> tuple[Fabric | None, tuple[str, ...]]:
    """Return the fabric merged from all sources that have one, and their disagreements."""
    if not sources:
        return None, ()
    if all(source.parsed.incomplete for source in sources):
        raise InputError(sources[0].parsed.incomplete, path=sources[0].group.path)
    for first, second in itertools.combinations(sources, 2):
        _check_twice(first, second)
    return merge_fabrics(_source_fabrics(sources))


def _check_twice(first: Source, second: Source) -> None:
    """Raise `InputError` if two sources of one format show the same fabric: those are two observations."""
    a, b = first.parsed.fabric, second.parsed.fabric
    if a is None or b is None or first.format != second.format:
        return
    if first.parsed.incomplete or second.parsed.incomplete:
        return
    same = same_vertices(a, b)
    if bool((same[b.switches] != UNKNOWN).any()) or not len(b.switches):
        reason = (
            f"a second {second.format} of one fabric, the first is {first.group.path}: ingest them one by one"
        )
        raise InputError(reason, path=second.group.path)


def _observed_at(sources: Sequence[Source], options: Options) -> datetime | None:
    """Return the time of the observation; None if no source describes the fabric or its hosts."""
    fabrics = [source for source in sources if source.parsed.fabric is not None]
    seen = fabrics + [source for source in sources if source.parsed.tables is not None]
    seen = seen or [source for source in sources if source.parsed.layouts]
    if not seen:
        return None
    if options.observed_at is not None:
        return as_utc(options.observed_at)
    for source in fabrics:
        if source.parsed.fabric is not None and source.parsed.fabric.observed_at is not None:
            return as_utc(source.parsed.fabric.observed_at)
    return max(file.modified_at for source in seen for file in source.group.files)


def _digest(sources: Sequence[Source]) -> str:
    """Return the SHA-256 of the decompressed bytes of all files, each preceded by its length."""
    digest = hashlib.sha256()
    for source in sources:
        for file in source.group.files:
            digest.update(file.size.to_bytes(8, "little"))
            for piece in file.pieces():
                digest.update(piece)
    return digest.hexdigest()


def _check(fabric: Fabric, tables: ForwardingTables, source: Source) -> list[str]:
    """Raise `UnknownName` if the tables are of another fabric; return warnings about small differences."""
    switches = fabric.guid[fabric.forwards & (fabric.guid != 0)]
    foreign = tables.switch_guid[~np.isin(tables.switch_guid, switches)]
    if len(foreign):
        known = [format_guid(int(guid)) for guid in switches]
        known_count = len(tables.switch_guid) - len(foreign)
        remedy = f"{known_count} of the {len(tables.switch_guid)} switches with tables are in the scan: "
        remedy += "are these the tables of this scan?"
        name = format_guid(int(foreign[0])) or "0x0"
        raise UnknownName("switch", name, known, path=source.group.path, remedy=remedy)
    owner, adapters = tables.lid_guid, fabric.adapters
    owners, first = np.unique(owner, return_index=True)
    row = np.minimum(np.searchsorted(owners, adapters.port_guid), len(owners) - 1)
    listed = (owners[row] == adapters.port_guid) & (adapters.port_guid != 0)
    lid = adapters.port_lid
    routed = (tables.ports != NO_ROUTE).any(axis=0)
    by_lid = ~listed & (lid > 0) & (lid < len(owner)) & routed[np.minimum(lid, len(owner) - 1)]
    other_lid = listed & (lid != first[row])
    port_has = "adapter port has", "adapter ports have"
    return counted(
        (
            len(switches) - len(tables.switch_guid),
            "switch of the scan has",
            "switches of the scan have",
            "no table",
        ),
        (int(other_lid.sum()), *port_has, "another LID here than in the scan"),
        (int(by_lid.sum()), *port_has, "another GUID here than in the scan: identified by LID"),
        (
            int((~listed & ~by_lid).sum()),
            "adapter port of the scan is",
            "adapter ports of the scan are",
            "not in the tables",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Disagreements between a source without ports and the stored fabric."""

    time: datetime
    """Time of the stored fabric's observation, UTC."""
    disagreements: tuple[str, ...]
    """One line per disagreement, naming both sides; empty if the two agree."""


def compare_with_stored(
    cluster: str, formats: str, sources: Sequence[Source], stored: Fabric, time: datetime
) -> Comparison:
    """Compare sources without ports with the last observed fabric of their cluster.

    Raises:
        PoorerSource: They have no host or switch in common, so that nothing can be compared.
    """
    known = SourceFabric(path=f"{cluster} as seen at {moment_text(time)}", fabric=stored)
    lines: list[str] = []
    for source in _source_fabrics(sources):
        try:
            found = differences(known, source).lines(without=REPRESENTING)
        except InputError as error:
            raise PoorerSource(cluster, formats) from error
        lines.extend(_ACTION.sub("", line) for line in found)
    return Comparison(time=time, disagreements=tuple(lines))


class Scans(Protocol):
    """Methods of a registry that return fabrics of a cluster, without forwarding tables."""

    def nearest_seen(self, cluster: str, at: datetime) -> Snapshot | None:
        """Return the fabric at a time, or the first one if none was seen before; None if there is none."""

    def largest_seen(self, cluster: str) -> Snapshot | None:
        """Return the fabric with most devices of all times."""


def require_same_cluster(registry: Scans, intake: Intake) -> None:
    """Raise if the scan or the forwarding tables of an intake are of another cluster.

    Raises:
        WrongCluster: Fewer than half of the devices are in the cluster's scan before it, or a switch of
            tables without a scan is not. If that scan shows only a part of the cluster, the cluster's largest
            scan counts.
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
