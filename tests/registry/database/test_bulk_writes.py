"""A transaction that reports how many rows it has written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from registry.database.bulk_writes import ProgressTransaction
from registry.database.driver import Database, Transaction


def test_rows_are_reported_batch_by_batch_and_all_written(database: Database) -> None:
    shown: list[tuple[str, float, float | None]] = []

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        shown.append((phase, done, total))

    def work(transaction: Transaction) -> list[dict[str, Any]]:
        shown.clear()
        counted = ProgressTransaction(transaction, progress, "writing")
        statement = (
            "UNWIND range(0, size($id) - 1) AS i CREATE (:Cluster {id: $id[i], seq: $seq[i], name: $name})"
        )
        columns: Mapping[str, Sequence[Any]] = {"id": list("abcdefg"), "seq": range(7)}
        counted.run_columns(
            statement, {name: list(column) for name, column in columns.items()}, batch=3, name="n"
        )
        counted.run_columns(statement, {"id": [], "seq": []}, name="n")
        found = counted.run(
            "MATCH (c:Cluster) WHERE c.name = 'n' RETURN c.id AS id, c.seq AS seq ORDER BY seq"
        )
        counted.finish()
        return found

    assert database.write(work) == [{"id": one, "seq": number} for number, one in enumerate("abcdefg")]
    assert shown == [
        ("writing", done, total) for done, total in ((0, None), (3, None), (6, None), (7, None), (7, 7))
    ]
