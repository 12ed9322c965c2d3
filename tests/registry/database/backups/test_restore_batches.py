"""How much one transaction of a restore holds in memory, without a database."""

from __future__ import annotations

from pathlib import Path

from registry.database.backups import restore
from registry.database.backups.backup_file import Header, encode, writing

HEADER = Header(schema=6, counts={})


def test_large_nodes_and_their_relationships_are_written_a_few_at_a_time(tmp_path: Path) -> None:
    """A backup of 30 sweeps of 768 KiB each and of 30 small runs, all joined to other nodes."""
    file = tmp_path / "file"
    with writing(file, HEADER) as writer:
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
    found = batches(file)
    assert found["Cluster"] == [30]
    for section in ("CounterSweep", "CounterSweep-OF->Cluster", "IngestRun-RECORDED->CounterSweep"):
        assert found[section] == [7, 7, 7, 7, 2]


def batches(file: Path) -> dict[str, list[int]]:
    """Return the numbers of rows that are written at once, by section."""
    found: dict[str, list[int]] = {}
    for name, rows in restore._batches(file):
        found.setdefault(name, []).append(len(rows))
    return found


def test_relationships_of_one_node_count_it_once(tmp_path: Path) -> None:
    with writing(tmp_path / "file", HEADER) as writer:
        writer.section("Placement")
        writer.record(encode({"id": "p", "host_of_rank": bytes(3 << 20)}))
        writer.section("Device")
        writer.record(encode({"id": "d"}))
        writer.section("Placement-LOADS->Device")
        for number in range(500):
            writer.record(encode(["p", "d", {"port": number}]))
    assert batches(tmp_path / "file")["Placement-LOADS->Device"] == [500]
