"""A backup with a digest that fits and content that does not: refused before a database is touched."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from registry.database.backups import backup_file
from registry.database.backups.restore import check_backup, restore
from registry.database.driver import Database
from registry.database.schema import check_version
from registry.errors import DatabaseError, InputError

HEADER = {"format": "fabric-almanac-dump", "version": 1, "schema": 6, "counts": {"Cluster": 1, "Content": 1}}
CLUSTER: list[Any] = [{"section": "Cluster"}, {"id": "c", "name": "c"}]
CONTENT: list[Any] = [{"section": "Content"}, {"id": "c/1", "cluster": "c"}]
OF: list[Any] = [{"section": "Content-OF->Cluster"}, ["c/1", "c", {}]]
SCHEMAS: list[Any] = [0, -5, "6", 6.0, True, None, [6], 7]
COUNTS: list[Any] = [[], "x", None, {"Cluster": "1"}, {"Cluster": -1}, {"Cluster": 1.0}]
DEEP = "[" * 100_000 + "]" * 100_000


def written(path: Path, lines: list[Any]) -> Path:
    """Write lines, as JSON unless they are text, with the end that fits them."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    body = "".join(f"{text}\n" for text in texts).encode()
    end = {"end": {"lines": len(lines), "sha256": hashlib.sha256(body).hexdigest()}}
    path.write_bytes(gzip.compress(body + json.dumps(end, separators=(",", ":")).encode() + b"\n"))
    return path


@pytest.mark.parametrize(
    "changed",
    [
        *({"schema": schema} for schema in SCHEMAS),
        *({"counts": counts} for counts in COUNTS),
        {"counts": {"Cluster": 2, "Content": 1}},
        {"counts": {"Cluster": 1}},
        {"counts": {**HEADER["counts"], "Stranger": 1}},  # type: ignore[dict-item]
        {"version": True},
        {"version": 1.0},
        {"version": "1"},
        {"format": 5},
        {"more": 1},
    ],
    ids=str,
)
def test_a_changed_header_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    path = written(tmp_path / "x", [{**HEADER, **changed}, *CLUSTER, *CONTENT])
    with pytest.raises(InputError) as caught:
        check_backup(path)
    assert caught.value.path == str(path)


@pytest.mark.parametrize("line", [0, 2], ids=["header", "record"])
@pytest.mark.parametrize("text", [DEEP, "1e999", "[1", '{"id":' + "9" * 5000 + "}"], ids=lambda one: one[:9])
def test_json_that_cannot_be_read_is_refused(tmp_path: Path, line: int, text: str) -> None:
    lines = [HEADER, *CLUSTER, *CONTENT]
    lines[line] = text
    with pytest.raises(InputError) as caught:
        check_backup(written(tmp_path / "x", lines))
    assert caught.value.line == line + 1
    assert len(str(caught.value)) < 2000


RECORDS: dict[str, tuple[list[Any], int]] = {
    "no id": ([*CLUSTER[:1], {"name": "c"}, *CONTENT], 3),
    "id is a number": ([*CLUSTER[:1], {"id": 7}, *CONTENT], 3),
    "id twice": ([*CLUSTER, *CONTENT, CONTENT[1]], 6),
    "end is missing": ([*CLUSTER, *CONTENT, OF[0], ["c/2", "c", {}]], 7),
    "relationship first": ([*CLUSTER, *OF, *CONTENT], 5),
    "map in a property": ([*CLUSTER, CONTENT[0], {"id": "c/1", "x": {"y": 1}}], 5),
    "list of lists": ([*CLUSTER, CONTENT[0], {"id": "c/1", "x": [[1]]}], 5),
    "list of two types": ([*CLUSTER, CONTENT[0], {"id": "c/1", "x": [1, "1"]}], 5),
    "too large": ([*CLUSTER, CONTENT[0], {"id": "c/1", "x": 1 << 63}], 5),
    "half a character": ([*CLUSTER, CONTENT[0], {"id": "c/1", "x": "\ud800"}], 5),
    "before a section": ([CLUSTER[1], *CLUSTER[:1], *CONTENT], 2),
    "time out of range": ([*CLUSTER, CONTENT[0], {"id": "c/1", "x": {"$time": "0001-01-01T00:00+14:00"}}], 5),
}


@pytest.mark.parametrize("what", RECORDS)
def test_a_record_that_cannot_be_stored_is_refused_with_its_line(tmp_path: Path, what: str) -> None:
    lines, number = RECORDS[what]
    with pytest.raises(InputError) as caught:
        check_backup(written(tmp_path / "x", [HEADER, *lines]))
    assert caught.value.line == number


def test_a_whole_backup_is_accepted(tmp_path: Path) -> None:
    counts = {**HEADER["counts"], "Content-OF->Cluster": 1}  # type: ignore[dict-item]
    path = written(tmp_path / "x", [{**HEADER, "counts": counts}, *CLUSTER, *CONTENT, *OF])
    taken: list[str] = []
    assert check_backup(path, lambda found: taken.append(next(found)[0])).counts == counts
    assert taken == ["Cluster"]


def test_what_is_refused_deletes_nothing(embedded_database: Database, tmp_path: Path) -> None:
    path = written(tmp_path / "x", [{**HEADER, "schema": 0}, *CLUSTER, *CONTENT])
    embedded_database.write(lambda transaction: transaction.run("MERGE (:Cluster {id: 'mine'})"))
    clusters = "MATCH (c:Cluster) RETURN c.id ORDER BY c.id"
    before = embedded_database.query(clusters)
    with pytest.raises(InputError, match="no schema version"):
        restore(embedded_database, path, replace=True)
    check_version(embedded_database)
    assert ("mine",) in before[1]
    assert embedded_database.query(clusters) == before
    assert not tmp_path.joinpath("x.previous").exists()
    embedded_database.write(lambda transaction: transaction.run("MATCH (c:Cluster {id: 'mine'}) DELETE c"))


def test_a_line_is_limited_when_it_is_written_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "x", [HEADER, *CLUSTER, CONTENT[0], {"id": "x" * 500}])
    assert backup_file.LINE_BYTES == 300_000_000
    monkeypatch.setattr(backup_file, "LINE_BYTES", 400)
    with pytest.raises(InputError, match="too long") as caught:
        check_backup(path)
    assert caught.value.line == 5
    header = backup_file.Header(schema=6, counts={"Cluster": 1})
    with (
        pytest.raises(DatabaseError, match="more than 400 bytes"),
        backup_file.writing(tmp_path / "y", header) as sink,
    ):
        sink.record(backup_file.encode({"id": "x" * 500}))
    assert not (tmp_path / "y").exists()
