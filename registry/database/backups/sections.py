"""Sections of a backup: one per label and per relationship of `registry.database.labels`.

A database with other labels or relationships is an error, so that nothing is left out silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from registry.database.driver import Database
from registry.database.labels import LABELS, RELATIONSHIPS
from registry.database.local.damage import REMEDY, damage_text
from registry.errors import DatabaseError

PAGE_BYTES = 8 << 20
"""Approximate size of what one statement reads or writes, in bytes of the file's lines."""
PAGE_ROWS = 10_000

COUNT_NODES = "MATCH (n:{label}) RETURN count(n) AS count"
COUNT_ALL_NODES = "MATCH (n) WHERE NOT n:Schema RETURN count(n) AS count"
COUNT_RELATIONSHIPS = "MATCH (:{source})-[r:{type}]->(:{target}) RETURN count(r) AS count"
COUNT_FROM_TARGETS = """
MATCH (b:{target})
WITH b
MATCH (b)<-[r:{type}]-(:{source})
RETURN count(r) AS count
"""
"""Reads the relationships, which counting them from their sources does not."""
COUNT_IDS = "MATCH (n:{label}) RETURN count(n.id) AS count"
COUNT_ALL_RELATIONSHIPS = "MATCH ()-[r]->() RETURN count(r) AS count"
JOINS = MappingProxyType({f"{one.source}-{one.type}->{one.target}": one for one in RELATIONSHIPS})
"""Relationships by the name of their section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transferred:
    """Number of nodes and relationships of a backup."""

    nodes: int
    relationships: int

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Transferred:
        """Return the numbers of all sections together."""
        nodes = sum(counts.get(label, 0) for label in LABELS)
        return cls(nodes=nodes, relationships=sum(counts.values()) - nodes)


def count(database: Database, statement: str) -> int:
    """Return the number that a statement counts."""
    return int(database.read(lambda transaction: transaction.run(statement))[0]["count"])


def all_nodes(database: Database) -> int:
    """Return the number of nodes of all labels but that of the schema, known or not."""
    return count(database, COUNT_ALL_NODES)


def known_counts(database: Database) -> dict[str, int]:
    """Return the number of nodes of each label and of relationships of each kind."""
    counts = {label: count(database, COUNT_NODES.format(label=label)) for label in LABELS}
    for name, kind in JOINS.items():
        statement = COUNT_RELATIONSHIPS.format(source=kind.source, type=kind.type, target=kind.target)
        counts[name] = count(database, statement)
    return counts


def lost_records(database: Database, counts: Mapping[str, int]) -> list[str]:
    """Return what cannot be read of the counted records, one text for each section.

    Files of a server that are damaged while it runs, or after it was killed, show in nothing else.
    """
    found = []
    for label in LABELS:
        read = count(database, COUNT_IDS.format(label=label))
        if read != counts[label]:
            found.append(f"{counts[label]:,} {label} records are counted and {read:,} can be read")
    for name, kind in JOINS.items():
        statement = COUNT_FROM_TARGETS.format(source=kind.source, type=kind.type, target=kind.target)
        read = count(database, statement)
        if read != counts[name]:
            found.append(f"{name} has {counts[name]:,} relationships by its sources, {read:,} by its targets")
    return found


def section_counts(database: Database) -> dict[str, int]:
    """Return `known_counts` of a database that has nothing else, and of which all can be read.

    Raises
    ------
    DatabaseError
        There are other labels or relationships, or records are lost.
    """
    counts = known_counts(database)
    lost = lost_records(database, counts)
    if lost:
        raise DatabaseError(f"records of the database are lost: {'; '.join(lost)}; {REMEDY}")
    nodes = sum(counts[label] for label in LABELS)
    unknown_nodes = count(database, COUNT_ALL_NODES) - nodes
    unknown_relationships = count(database, COUNT_ALL_RELATIONSHIPS) - (sum(counts.values()) - nodes)
    if unknown_nodes or unknown_relationships:
        few = min(unknown_nodes, unknown_relationships) < 0
        damaged = damage_text(database.folder) or (f"its files are damaged: {REMEDY}" if few else "")
        raise DatabaseError(
            f"the database at {database.uri} holds {unknown_nodes} nodes and {unknown_relationships} "
            f"relationships that the schema does not know{damaged and f'; {damaged}'}"
        )
    return counts
