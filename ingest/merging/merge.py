"""From what each source holds to one `Intake`: merged, and checked against each other.

All files of one call are one observation of one cluster. Several sources of its fabric are made one, each
filling in what the others do not tell (`ingest.merging`); there is at most one set of forwarding tables, and
it must belong to the fabric.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from ingest.merging.counters import join_sweeps, only_plan
from ingest.merging.fabrics import Told, merge_fabrics
from ingest.merging.identities import UNKNOWN, same_vertices
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.reading.source import SourceGroup
from registry.errors import ConfigError, InputError, UnknownName
from registry.model import NO_ROUTE, Fabric, ForwardingTables, Profile, Trace, as_utc, format_guid
from registry.model.intake import Intake


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """A source that has been read.

    Attributes
    ----------
    group : SourceGroup
    format : str
        Name of its format.
    parsed : Parsed
    """

    group: SourceGroup
    format: str
    parsed: Parsed


def merge(sources: Sequence[Source], options: Options) -> Intake:
    """One intake of everything that the sources hold.

    The time of an observation is, in this order, the caller's, the scan's own, that of the youngest of
    the files that tell of the fabric.

    Raises
    ------
    ConfigError
        No cluster is named but something needs one; one name for several profiles.
    InputError
        Fabrics that have nothing in common, or are of one tool at two times; a source that is no fabric
        alone; two sets of tables; nothing at all.
    UnknownName
        A switch of the tables that the fabric does not have.
    """
    fabrics_from = [source for source in sources if source.parsed.fabric is not None]
    tables_from = _only_tables(sources)
    warnings = [f"{source.group.path}: {warning}" for source in sources for warning in source.parsed.warnings]
    fabric, disagreements = _fabric(fabrics_from)
    warnings += disagreements
    tables = tables_from.parsed.tables if tables_from else None
    if fabric is not None and tables is not None and tables_from is not None:
        warnings += [
            f"{tables_from.group.path}: {warning}" for warning in _check(fabric, tables, tables_from)
        ]
    jobs = tuple(job for source in sources for job in source.parsed.jobs)
    placements = tuple(
        replace(found, job=options.job or found.job)
        for source in sources
        if (found := source.parsed.placement) is not None
    )
    counters = join_sweeps([source.parsed.counters for source in sources])
    intended = only_plan([(source.group.path, source.parsed.intended) for source in sources])
    layouts = tuple(layout for source in sources for layout in source.parsed.layouts)
    observes = fabric is not None or tables is not None or bool(counters) or intended is not None
    observes = observes or bool(layouts)
    if not options.cluster and (observes or jobs or placements):
        reason = "all but profiles need the name of their cluster: give --cluster NAME"
        raise ConfigError("cluster", reason)
    seen = [*fabrics_from, *([tables_from] if tables_from else [])]
    seen = seen or [source for source in sources if source.parsed.layouts]
    return Intake(
        cluster=options.cluster or None,
        observed_at=_observed_at(seen, options),
        fabric=fabric,
        tables=tables,
        profiles=_profiles(sources, options),
        traces=_traces(sources),
        jobs=jobs,
        placements=placements,
        counters=counters,
        intended=intended,
        layouts=layouts,
        source=", ".join(dict.fromkeys(source.format for source in sources)),
        files=tuple(source.group.path for source in sources),
        warnings=tuple(warnings),
        digest=_digest(sources),
    )


def told_fabrics(sources: Sequence[Source]) -> list[Told]:
    """What the sources tell of a fabric, one by one."""
    return [
        Told(path=source.group.path, fabric=source.parsed.fabric, assumed=source.parsed.assumed)
        for source in sources
        if source.parsed.fabric is not None
    ]


def _fabric(sources: Sequence[Source]) -> tuple[Fabric | None, tuple[str, ...]]:
    """The one fabric of all sources that tell of one, and what they disagree on."""
    told = told_fabrics(sources)
    if not told:
        return None, ()
    if all(source.parsed.incomplete for source in sources):
        raise InputError(sources[0].parsed.incomplete, path=sources[0].group.path)
    for later in range(1, len(told)):
        for earlier in range(later):
            _check_twice(sources[earlier], sources[later])
    merged = merge_fabrics(told)
    return merged.fabric, merged.warnings


def _check_twice(first: Source, second: Source) -> None:
    """Raise where one tool saw one fabric twice: those are two observations, of two times."""
    a, b = first.parsed.fabric, second.parsed.fabric
    if a is None or b is None or first.format != second.format:
        return
    if first.parsed.incomplete or second.parsed.incomplete:
        return
    same = same_vertices(a, b)
    if bool((same[b.switches] != UNKNOWN).any()) or not len(b.switches):
        reason = (
            f"a second {second.format} of one fabric, the other is {first.group.path}: ingest them one by one"
        )
        raise InputError(reason, path=second.group.path)


def _only_tables(sources: Sequence[Source]) -> Source | None:
    """The one source that holds forwarding tables; None where none does."""
    found = [source for source in sources if source.parsed.tables is not None]
    if len(found) > 1:
        reason = (
            f"two sets of forwarding tables in one call, the other from {found[0].group.path}:"
            " ingest them one by one"
        )
        raise InputError(reason, path=found[1].group.path)
    return found[0] if found else None


def _observed_at(seen: Sequence[Source], options: Options) -> datetime | None:
    if not seen:
        return None
    if options.observed_at is not None:
        return as_utc(options.observed_at)
    for source in seen:  # the scan's own time, of the first that tells one
        if source.parsed.fabric is not None and source.parsed.fabric.observed_at is not None:
            return as_utc(source.parsed.fabric.observed_at)
    return max(file.modified_at for source in seen for file in source.group.files)


def _profiles(sources: Sequence[Source], options: Options) -> tuple[Profile, ...]:
    profiles = [source.parsed.profile for source in sources if source.parsed.profile is not None]
    if options.name is None:
        return tuple(profiles)
    if len(profiles) != 1:
        raise ConfigError("name", f"names one profile, but {len(profiles)} were given")
    return (replace(profiles[0], name=options.name),)


def _traces(sources: Sequence[Source]) -> tuple[Trace | None, ...]:
    """The trace that each profile was counted from; empty where none was."""
    traces = tuple(source.parsed.trace for source in sources if source.parsed.profile is not None)
    return traces if any(trace is not None for trace in traces) else ()


def _digest(sources: Sequence[Source]) -> str:
    """SHA-256 over the decompressed bytes of all files, each with its length before it."""
    digest = hashlib.sha256()
    for source in sources:
        for file in source.group.files:
            digest.update(file.size.to_bytes(8, "little"))
            for piece in file.pieces():
                digest.update(piece)
    return digest.hexdigest()


def _check(fabric: Fabric, tables: ForwardingTables, source: Source) -> list[str]:
    """Raise where the tables are of another fabric; warnings for what differs a little."""
    switches = fabric.guid[fabric.forwards & (fabric.guid != 0)]
    strange = tables.switch_guid[~np.isin(tables.switch_guid, switches)]
    if len(strange):
        known = [format_guid(int(guid)) for guid in switches]
        remedy = "are these the tables of this scan?"
        name = format_guid(int(strange[0])) or "0x0"
        raise UnknownName("switch", name, known, path=source.group.path, remedy=remedy)
    owner, adapters = tables.lid_guid, fabric.adapters
    owners, first = np.unique(owner, return_index=True)
    at = np.minimum(np.searchsorted(owners, adapters.port_guid), len(owners) - 1)
    listed = (owners[at] == adapters.port_guid) & (adapters.port_guid != 0)
    lid = adapters.port_lid
    routed = (tables.ports != NO_ROUTE).any(axis=0)
    by_lid = ~listed & (lid > 0) & (lid < len(owner)) & routed[np.minimum(lid, len(owner) - 1)]
    counts = (
        (len(switches) - len(tables.switch_guid), "switch(es) of the scan have no table"),
        (int((listed & (lid != first[at])).sum()), "adapter port(s) have another LID here than in the scan"),
        (int(by_lid.sum()), "adapter port(s) have another GUID here: found by the LIDs of the scan"),
        (int((~listed & ~by_lid).sum()), "adapter port(s) of the scan are not in the tables"),
    )
    return [f"{count} {what}" for count, what in counts if count]
