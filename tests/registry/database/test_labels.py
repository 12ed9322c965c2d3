"""Labels, relationships and indexes as data."""

from __future__ import annotations

import re

from registry.database.labels import (
    INDEXES,
    LABELS,
    RELATIONSHIPS,
    Index,
    constraint_statement,
    index_statement,
)
from tests.support import paths

PAGE = (paths.ROOT / "docs" / "reference" / "schema.md").read_text("utf-8")


def documented_properties() -> dict[str, set[str]]:
    """Properties of each label on the page of the schema."""
    rows = re.findall(
        r"^\| `([A-Z]\w+)` \| [^|]+ \| ([^|]+) \|$", PAGE.partition("## Indexes")[0], re.MULTILINE
    )
    return {label: set(re.findall(r"`(\w+)`", cell)) for label, cell in rows}


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


def test_the_page_of_the_schema_has_every_label_relationship_and_index() -> None:
    assert tuple(documented_properties()) == LABELS
    found = re.findall(r"^\| `\(:(\w+)\)-\[:(\w+)\]->\(:(\w+)\)` \|", PAGE, re.MULTILINE)
    assert found == [tuple(one) for one in RELATIONSHIPS]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", PAGE.partition("## Indexes")[2], re.MULTILINE)
    assert [(label, tuple(re.findall(r"\w+", cell)), what) for label, cell, what in rows] == [
        (one.label, one.properties, one.serves) for one in INDEXES
    ]


def test_every_documented_property_is_written_by_the_program() -> None:
    source = "\n".join(path.read_text("utf-8") for path in (paths.ROOT / "registry").rglob("*.py"))
    names = set().union(*documented_properties().values())
    names = {re.sub("^(optical|argument|proof)_", "", name) for name in names}
    assert not [name for name in sorted(names) if not re.search(rf"\b{name}\b", source)]
