"""Backups of every earlier schema version: restored and migrated, they read as what was ingested then.

The values are those of the files that were ingested, see tests/data/dumps/README.md. Migrations run on both
servers in test_schema.py, restoring does in test_backup.py.
"""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from registry.database.backups.backup import backup
from registry.database.backups.restore import restore
from registry.database.driver import Database
from registry.database.schema import MIGRATIONS, check_version, current_version
from registry.errors import UnknownName
from registry.fabrics.contents import content_hash
from registry.maintenance.verify import require_intact, verify
from registry.model import Job, Profile
from registry.model.intake import Intake
from registry.profiles import profile_id
from registry.records.circuit_plans import circuit_plan_id
from registry.records.placements.saving import placement_id
from registry.records.simulations import simulation_id
from registry.records.traces import trace_id
from registry.registry import Registry
from tests.support import paths

DUMPS = paths.DATA / "dumps"
VERSIONS = range(1, 5)
HOSTS = tuple(f"n0{number}" for number in range(1, 9))
NODES_OF_JOB = ("n01", "n02", "n03", "n06")


def hour(number: int) -> datetime:
    return datetime(2025, 11, 1, number, tzinfo=UTC)


@pytest.fixture
def server_kind() -> str:
    """Return the server whose backups these are."""
    return "embedded"


def test_a_backup_of_every_earlier_version_is_tested() -> None:
    assert MIGRATIONS[-1].version - 1 in (VERSIONS[-1], 5)  # schema-5.dump has tests of its own
    assert all((DUMPS / f"schema-{version}.dump").exists() for version in range(1, 6))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_backup_of_an_earlier_version_reads_as_what_was_ingested_then(
    registry: Registry, version: int
) -> None:
    path = DUMPS / f"schema-{version}.dump"
    restore(registry.database, path, check=lambda some: require_intact(some, str(path)))
    assert current_version(registry.database) == MIGRATIONS[-1].version
    check_version(registry.database)
    found = verify(registry.database)
    assert not found.damaged, found.findings
    assert {one.label for one in found.findings} <= {"Placement"}
    assert (found.checked["Content"], found.checked["ForwardingTable"]) == (2, 4)
    check_fabrics(registry)
    check_runs_and_jobs(registry, version)
    check_placements(registry, version)
    check_counters_and_plan(registry, version)
    advice = [one.job for one in registry.advices.list("hpc1")]
    assert advice == (["78"] if version >= 3 else [])
    traces, simulations = registry.traces.list(), registry.simulations.list()
    assert [(one.messages, one.bytes) for one in traces] == ([(4, 14000.0)] if version >= 4 else [])
    assert [one.delivered_bytes for one in simulations] == ([14000.0] if version >= 4 else [])
    check_writing(registry)


def check_fabrics(earlier: Registry) -> None:
    (cluster,) = earlier.fabrics.clusters()
    assert (cluster.name, cluster.observations, cluster.cables, cluster.hosts) == ("hpc1", 2, 15, 8)
    assert (cluster.first_observed_at, cluster.last_observed_at) == (hour(0), hour(12))
    before, after = earlier.fabrics.read("hpc1", hour(11)), earlier.fabrics.read("hpc1")
    assert (before.fabric.cable_count, after.fabric.cable_count) == (16, 15)
    assert {before.fabric.names[v] for v in before.fabric.hosts} == set(HOSTS)
    for snapshot in (before, after):
        assert snapshot.id == f"hpc1/{content_hash(snapshot.fabric)}"
        assert snapshot.fabric.tables is not None
        assert snapshot.fabric.tables.switch_guid.tolist() == [
            *(0xA000000000000001, 0xA000000000000002),
            *(0xB000000000000001, 0xB000000000000002),
        ]
    (lost,) = earlier.fabrics.changes("hpc1", hour(0)).cables_vanished
    assert {(lost.source, lost.source_port), (lost.target, lost.target_port)} == {("leaf2", 8), ("spine2", 4)}
    assert earlier.fabrics.subgraph("hpc1", HOSTS, hour(3)).cable_count == 16
    assert earlier.fabrics.subgraph("hpc1", HOSTS).cable_count == 15
    graph = derived(earlier.database)
    earlier.fabrics.rebuild("hpc1")
    assert derived(earlier.database) == graph


def check_runs_and_jobs(earlier: Registry, version: int) -> None:
    stored = earlier.profiles.read("ring")
    assert stored.profile.bytes.tolist() == [1000.0 * (rank + 1) for rank in range(8)]
    job = earlier.jobs.read("77")
    assert (job.job.hosts, job.job.started_at, job.profile) == (NODES_OF_JOB, hour(6), stored.id)
    formats = {name for run in earlier.runs.list() for name in run.formats}
    assert formats >= {"ibnetdiscover", "opensm-lfts", "edge-csv", "slurm-scontrol"}
    assert (version < 2) == (not {"counters-csv", "ndt"} & formats)


def check_placements(earlier: Registry, version: int) -> None:
    (row,) = [one for one in earlier.placements.history() if (one.strategy, one.job) == ("greedy", "77")]
    assert (row.role, row.profile, row.application, row.ranks) == ("proposed", "ring", "ring", 8)
    # by hand: two ranks on each of four hosts; 7,000 bytes leave the host of ranks 5 and 6 at 12.5 GB/s
    assert row.congestion_seconds == pytest.approx(7000 / 12.5e9)
    assert row.snapshot == earlier.fabrics.read("hpc1", hour(8)).id
    stored = earlier.placements.read(row.id)
    assert sorted(stored.hosts) == sorted(NODES_OF_JOB * 2)
    roles = {one.role for one in earlier.placements.history()}
    assert roles == ({"proposed"} if version < 3 else {"proposed", "present"})


def derived(database: Database) -> list[list[Any]]:
    states = (
        "MATCH (d:Device)-[:HAS_STATE]->(s) RETURN d.name, s.id, s.name, s.lids, s.valid_from, s.valid_to"
    )
    links = "MATCH (a:Device)-[l:LINK]->(b) RETURN a.id, b.id, l.key, l.capacity, l.valid_from, l.valid_to"
    return [sorted(database.query(text)[1], key=repr) for text in (states, links)]


def check_counters_and_plan(earlier: Registry, version: int) -> None:
    if version < 2:
        with pytest.raises(UnknownName):
            earlier.counters.rates("hpc1")
        return
    rates = earlier.counters.rates("hpc1", hour(9))
    fabric = earlier.fabrics.read("hpc1", hour(9)).fabric
    names, links = fabric.names, fabric.links
    known = {
        (names[links.source[row]], names[links.target[row]]): value
        for row, value in enumerate(rates.bytes_per_second.tolist())
        if np.isfinite(value)
    }
    # in 600 s port 1 sent 600,000 bytes and received none, port 2 sent none and received 1,200,000
    assert known == {
        ("leaf1", "n01"): 1000.0,
        ("n01", "leaf1"): 0.0,
        ("leaf1", "n02"): 0.0,
        ("n02", "leaf1"): 2000.0,
    }
    plan = earlier.intended.read("hpc1", hour(10)).wiring
    assert len(plan) == 3
    assert plan.source == ("leaf1", "leaf1", "leaf2")


def check_writing(earlier: Registry) -> None:
    before = earlier.fabrics.read("hpc1", hour(3)).fabric
    known = earlier.profiles.read("ring").profile
    again = Profile.from_edges(
        list(range(8)),
        [*range(1, 8), 0],
        known.bytes.tolist(),
        messages=known.messages.tolist(),
        name="ring",
        application="ring",
    )
    time = datetime(2025, 11, 1, 13, 0, 0, 123456, tzinfo=UTC)
    job = Job(id="79", hosts=("n08",), slots=(1,), state="RUNNING", started_at=time)
    receipt = earlier.save(
        Intake(cluster="hpc1", observed_at=hour(13), fabric=before, profiles=(again,), jobs=(job,))
    )
    assert (receipt.new_content, receipt.new_observation, receipt.links_opened) == (False, True, 2)
    assert receipt.ids("profiles") == (earlier.profiles.read("ring").id,)
    assert earlier.jobs.read("79").job.started_at == time
    assert earlier.fabrics.subgraph("hpc1", HOSTS).cable_count == 16


def test_what_is_read_of_the_latest_version_before_has_its_ids_and_is_saved_and_dumped_as_it_was(
    registry: Registry, tmp_path: Path
) -> None:
    latest = DUMPS / "schema-5.dump"
    restore(registry.database, latest, check=lambda some: require_intact(some, str(latest)))
    assert not verify(registry.database).damaged
    backup(registry.database, tmp_path / "again")
    first, second = (lines_of(path) for path in (latest, tmp_path / "again"))
    assert second[1:-1] == first[1:-1]  # without the header's version and the digest
    counts = [json.loads(lines[0])["counts"] for lines in (first, second)]
    assert counts[1] == {**dict.fromkeys(counts[1], 0), **counts[0]}
    nodes = registry.database.query("MATCH (n) RETURN count(n)")[1]
    profiles = [registry.profiles.read(one.id) for one in registry.profiles.list()]
    assert [profile_id(one.profile) for one in profiles] == [one.id for one in profiles]
    traces = [registry.traces.read(one.id) for one in registry.traces.list()]
    assert [trace_id(one.profile, one.trace) for one in traces] == [one.id for one in traces]
    placements = [registry.placements.read(one.id) for one in registry.placements.history()]
    assert [placement_id(one) for one in placements] == [one.id for one in placements]
    simulations = [registry.simulations.read(one.id) for one in registry.simulations.list()]
    assert [simulation_id(one) for one in simulations] == [one.id for one in simulations]
    plans = [registry.circuit_plans.read(one.id) for one in registry.circuit_plans.list()]
    assert [circuit_plan_id(one) for one in plans] == [one.id for one in plans]
    counted = (len(profiles), len(traces), len(placements), len(simulations), len(plans))
    assert counted == (4, 1, 9, 4, 1)
    assert registry.placements.save_many(placements) == tuple(one.id for one in placements)
    assert [registry.simulations.save(one) for one in simulations] == [one.id for one in simulations]
    assert [registry.circuit_plans.save(one) for one in plans] == [one.id for one in plans]
    assert registry.database.query("MATCH (n) RETURN count(n)")[1] == nodes


def lines_of(path: Path) -> list[bytes]:
    """Return the lines of a dump without those that begin a section: later versions have more, here empty."""
    lines = gzip.decompress(path.read_bytes()).splitlines()
    return [line for line in lines if not line.startswith(b'{"section":')]
