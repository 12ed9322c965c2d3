"""Kinds of records: their ids, their statements, and records created, found and deleted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pytest

from registry.database import stored_kinds
from registry.database.driver import Database
from registry.database.stored_kinds import Join, NewRecord, RecordKind, delete_ids, hashed_id, known_ids
from registry.errors import DatabaseError, UnknownName

TO_JOB = Join("HAS_PLACEMENT", "Job", incoming=True)
KIND = RecordKind(name="thing", label="Placement", letter="p", owner=stored_kinds.OF_CLUSTER, joins=(TO_JOB,))


@dataclass(frozen=True)
class Row:
    id: str
    recorded_at: datetime
    names: list[str]


def test_an_id_is_a_letter_and_a_hash_of_provenance_and_columns() -> None:
    one = KIND.identity({"names": ["a"]}, {"seed": 1, "cluster": "c"})
    assert (one[0], len(one)) == ("p", 13)
    assert KIND.identity({"names": ["a"]}, {"cluster": "c", "seed": 1}) == one
    assert KIND.identity({"names": ["a"]}, {"cluster": "c", "seed": 2}) != one
    assert KIND.identity({"names": ["b"]}, {"cluster": "c", "seed": 1}) != one
    assert hashed_id("c", "a", "b") == "c/7e18f737311b2dc3"


def test_a_list_reads_the_fields_of_its_rows() -> None:
    names = "WITH n, collect(n.x) AS names\n"
    statement = KIND.list_statement(Row, "n.cluster = $cluster", then=names, computed=("names",))
    assert statement == (
        "MATCH (n:Placement)\nWHERE n.cluster = $cluster\nWITH n, collect(n.x) AS names\n"
        "RETURN n.id AS id, n.recorded_at AS recorded_at, names\nORDER BY recorded_at DESC, id\n"
    )


def test_records_are_created_found_and_deleted(database: Database) -> None:
    records = [
        NewRecord("p1a", {"seed": 1, "job": None}, owner="c", joined={TO_JOB: ["c/j"]}),
        NewRecord("p1b", {"seed": 2}, owner="c"),
    ]
    database.write(lambda t: t.run("CREATE (:Cluster {id: 'c'}), (:Job {id: 'c/j'})"))
    database.write(lambda t: KIND.create(t, records))
    found = database.query(
        "MATCH (p:Placement)-[:OF]->(c:Cluster) OPTIONAL MATCH (j:Job)-[:HAS_PLACEMENT]->(p) "
        "RETURN p.id, p.seed, p.job, c.id, j.id ORDER BY p.id"
    )
    assert found[1] == [("p1a", 1, None, "c", "c/j"), ("p1b", 2, None, "c", None)]
    assert database.read(lambda t: KIND.known(t, ["p1a", "p2"])) == {"p1a"}
    assert database.read(lambda t: KIND.find(t, "p1b"))["node"]["seed"] == 2
    for prefix in ("p1", "q", ""):
        with pytest.raises(UnknownName, match="there is no thing"):
            database.read(lambda t, prefix=prefix: KIND.find(t, prefix))  # type: ignore[misc]
    database.write(lambda t: delete_ids(t, "Placement", ["p1b", "p2"]))
    assert database.read(lambda t: known_ids(t, "Placement", ["p1a", "p1b"])) == {"p1a"}


def test_a_damaged_record_is_a_database_error() -> None:
    for wrong in (KeyError("seed"), ValueError("no seed")):
        with pytest.raises(DatabaseError, match="the stored thing p1 is damaged"), KIND.reading("p1"):
            raise wrong
