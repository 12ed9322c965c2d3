"""Compare what is stored with its ids, and the derived graph with the observations.

Nothing is changed; `registry.maintenance.repair` repairs what is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from registry.database.backups.backup import Watch, read_one_state, read_section
from registry.database.backups.sections import all_nodes, known_counts, lost_records
from registry.database.driver import Database, Transaction
from registry.database.labels import LABELS
from registry.database.local.damage import present_damage
from registry.errors import (
    AlmanacError,
    DatabaseError,
    DatabaseUnavailable,
    InputError,
    RegistryBusy,
    SchemaVersionError,
)
from registry.fabrics import derived
from registry.fabrics.fabrics import derived_graph
from registry.fabrics.facts import LinkFact
from registry.fabrics.timeline import Interval
from registry.maintenance.integrity import FILE, FILES, GRAPH, Finding, RecordCheck
from registry.model.port_names import port_name
from registry.progress import Progress, silent

EXAMPLES = 3
"""Differences of a derived graph that a finding names."""

_OBSERVED = """
MATCH (o:Observation)-[:SAW]->(:Content)
RETURN collect(DISTINCT o.cluster) AS names
"""

_DEVICES = """
MATCH (d:Device)
WHERE d.cluster = $cluster
RETURN collect([d.key, d.name, d.kind]) AS devices
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Result of `verify`.

    Attributes
    ----------
    checked : mapping of str to int
        Number of records whose content was compared, by label.
    findings : tuple of Finding
    """

    checked: Mapping[str, int]
    findings: tuple[Finding, ...]

    @property
    def damaged(self) -> bool:
        """True if anything was found that is not harmless."""
        return any(not finding.harmless for finding in self.findings)

    @property
    def has_damaged_files(self) -> bool:
        """True if files of the embedded server are damaged, which only a backup repairs."""
        return any(finding.problem == FILE for finding in self.findings)


def verify(database: Database, progress: Progress = silent) -> Verification:
    """Check all that is stored, as it is at one moment.

    Raises
    ------
    SchemaVersionError
    DatabaseError
        The registry was written to in every attempt.
    """
    files = () if database.folder is None else file_findings(database.folder)
    try:
        found = _read(database, progress)
    except DatabaseError as error:
        if database.folder is None or isinstance(
            error, DatabaseUnavailable | RegistryBusy | SchemaVersionError
        ):
            raise
        reason = f"the records cannot be read: {error.reason}"
        found = Verification(checked={}, findings=(_file_finding("", reason),))
    return Verification(checked=found.checked, findings=(*files, *found.findings))


def file_findings(home: Path) -> tuple[Finding, ...]:
    """Return what is damaged of the files of the embedded server of a data folder."""
    return tuple(_file_finding(*text.split(" ", 1)) for text in present_damage(home))


def _file_finding(name: str, reason: str) -> Finding:
    return Finding(problem=FILE, label=FILES, id=name, cluster=None, reason=reason)


def _read(database: Database, progress: Progress) -> Verification:
    """Read all records; see `verify`."""

    def work(watch: Watch) -> Verification:
        check = RecordCheck()
        counts = known_counts(database)
        done, total = 0, sum(counts.values())
        for section in counts:
            for value in read_section(database, section):
                check.add(section, value)
                watch.keep()
                done += 1
                if done % 1000 == 0:
                    progress("reading the registry", done, total)
        findings = check.finish()
        if done != total or all_nodes(database) < sum(counts[label] for label in LABELS):
            reason = f"{total:,} records are counted and {done:,} can be read"
            findings.append(_file_finding("", reason))
        findings += (_file_finding("", reason) for reason in lost_records(database, counts))
        clusters = database.read(lambda transaction: transaction.run(_OBSERVED))[0]["names"]
        for number, cluster in enumerate(sorted(clusters)):
            progress("comparing derived graphs", number, len(clusters))
            findings += database.read(partial(_graph_findings, cluster=cluster))
            watch.keep()
        progress("comparing derived graphs", len(clusters), len(clusters))
        return Verification(checked=Counter(check.checked), findings=tuple(findings))

    return read_one_state(database, work)


def require_intact(records: Iterable[tuple[str, int, int, Any]], path: str) -> None:
    """Raise if a record of a backup does not match its id.

    Raises
    ------
    InputError
    """
    check, lines = RecordCheck(), {}
    for section, number, _, value in records:
        check.add(section, value)
        if isinstance(value, dict):
            lines[section, value.get("id")] = number
    damaged = [finding for finding in check.finish() if not finding.harmless]
    if damaged:
        first = damaged[0]
        more = f" and {len(damaged) - 1} more records" if len(damaged) > 1 else ""
        reason = (
            f"the registry was damaged when it was saved: {first.kind} {first.id}{more}: {first.reason}; "
            "--accept-damaged restores it nevertheless, almanac db verify --repair then repairs it"
        )
        raise InputError(reason, path=path, line=lines.get((first.label, first.id)))


def _graph_findings(transaction: Transaction, cluster: str) -> list[Finding]:
    """Compare the derived graph of a cluster with the one that its observations give."""
    try:
        graph = derived_graph(transaction, cluster)
    except AlmanacError as error:  # the snapshot itself is a finding
        reason = f"it cannot be compared, as a snapshot cannot be read: {error.reason}"
        return [Finding(problem=GRAPH, label="Cluster", id=cluster, cluster=cluster, reason=reason)]
    stored = derived.stored_graph(transaction, cluster)
    latest: dict[str, tuple[datetime, str, str]] = {}
    for state, spans in graph.states.items():
        last = (max(span.end for span in spans), state.name, state.kind)
        latest[state.key] = max(latest.get(state.key, last), last)
    named = {(key, name, kind) for key, (_, name, kind) in latest.items()}
    found = {tuple(row) for row in transaction.run(_DEVICES, cluster=cluster)[0]["devices"]}
    names = {key: name for key, name, _ in named}
    texts = [
        *_differences("links", graph.links, stored.links, names),
        *_differences("states of devices", graph.states, stored.states, names),
        *_listed("devices that are missing or have another name", [name for _, name, _ in named - found]),
        *_listed("devices that no observation gives", [name for _, name, _ in found - named]),
    ]
    return [
        Finding(problem=GRAPH, label="Cluster", id=cluster, cluster=cluster, reason=text) for text in texts
    ]


def _differences(
    what: str,
    graph: Mapping[Any, list[Interval]],
    stored: Mapping[Any, list[Interval]],
    names: Mapping[str, str],
) -> list[str]:
    """Return a line about missing intervals, and one about those that no observation gives."""

    def texts(some: Iterable[tuple[Any, Interval]]) -> list[str]:
        return [f"{_name(fact, names)} since {span.start.isoformat()}" for fact, span in some]

    given, held = (
        Counter((fact, span) for fact, spans in one.items() for span in spans) for one in (graph, stored)
    )
    return [
        *_listed(f"{what} that are missing or have another time", texts((given - held).elements())),
        *_listed(f"{what} that no observation gives", texts((held - given).elements())),
    ]


def _name(fact: Any, names: Mapping[str, str]) -> str:
    """Return a link or a device in words."""
    if not isinstance(fact, LinkFact):
        return str(fact.name)
    source, target = (names.get(key, key) for key in (fact.source, fact.target))
    return f"{port_name(source, fact.src_port)} to {target}"


def _listed(what: str, texts: Sequence[str]) -> list[str]:
    """Return a line with the number of things and the first of them, or nothing."""
    more = f" and {len(texts) - EXAMPLES:,} more" if len(texts) > EXAMPLES else ""
    return [f"{len(texts):,} {what}: {'; '.join(sorted(texts)[:EXAMPLES])}{more}"] if texts else []
