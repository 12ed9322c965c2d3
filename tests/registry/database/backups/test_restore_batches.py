"""How much one transaction of a restore holds in memory, without a database."""

from __future__ import annotations

from pathlib import Path

import pytest

from registry.database.backups import restore
from registry.database.backups.backup_file import Header, encode, writing

HEADER = Header(schema=6, counts={})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A backup of 30 sweeps of a megabyte each and of 30 small runs, all joined to other nodes."""
    with writing(tmp_path / "file", HEADER) as writer:
        for label, blob in (("Cluster", b""), ("IngestRun", b""), ("CounterSweep", bytes(3 << 18))):
            writer.section(label)
            for number in range(30):
                writer.record(encode({"id": f"{label} {number}", "blob": blob}))
        for source, section, target in (
            ("CounterSweep", "CounterSweep-OF->Cluster", "Cluster"),
            ("IngestRun", "IngestRun-RECORDED->CounterSweep", "CounterSweep"),
        ):
            writer.section(section)
            for number in range(30):
                writer.record(encode([f"{source} {number}", f"{target} {number}", {}]))
    return tmp_path / "file"


def batches(file: Path, section: str) -> list[int]:
    return [len(rows) for name, rows in restore._batches(file) if name == section]


def test_small_nodes_are_written_together(file: Path) -> None:
    assert batches(file, "Cluster") == [30]


@pytest.mark.parametrize(
    "section", ["CounterSweep", "CounterSweep-OF->Cluster", "IngestRun-RECORDED->CounterSweep"]
)
def test_large_nodes_and_their_relationships_are_written_a_few_at_a_time(file: Path, section: str) -> None:
    assert batches(file, section) == [7, 7, 7, 7, 2]


def test_relationships_of_one_node_count_it_once(tmp_path: Path) -> None:
    with writing(tmp_path / "file", HEADER) as writer:
        writer.section("Placement")
        writer.record(encode({"id": "p", "host_of_rank": bytes(3 << 20)}))
        writer.section("Device")
        writer.record(encode({"id": "d"}))
        writer.section("Placement-LOADS->Device")
        for number in range(500):
            writer.record(encode(["p", "d", {"port": number}]))
    assert batches(tmp_path / "file", "Placement-LOADS->Device") == [500]
