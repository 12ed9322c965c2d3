"""Labels, relationships and indexes as data."""

from __future__ import annotations

from registry.database.labels import (
    INDEXES,
    LABELS,
    RELATIONSHIPS,
    Index,
    constraint_statement,
    index_statement,
)


def test_indexes_and_relationships_have_known_labels() -> None:
    assert len(set(LABELS)) == len(LABELS)
    assert {index.label for index in INDEXES} <= set(LABELS)
    assert all(index.serves for index in INDEXES)
    assert len({index.name for index in INDEXES}) == len(INDEXES)
    assert {end for one in RELATIONSHIPS for end in (one.source, one.target)} <= set(LABELS)
    assert len(set(RELATIONSHIPS)) == len(RELATIONSHIPS)


def test_statements_of_constraints_and_indexes() -> None:
    assert constraint_statement("LinkLoads") == (
        "CREATE CONSTRAINT linkloads_id IF NOT EXISTS FOR (n:LinkLoads) REQUIRE n.id IS UNIQUE"
    )
    assert index_statement(Index("job_started", "Job", ("cluster", "started_at"), "jobs at a time")) == (
        "CREATE INDEX job_started IF NOT EXISTS FOR (n:Job) ON (n.cluster, n.started_at)"
    )
