"""A dump of an earlier version: what is read of it has the ids under which it was stored."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from registry.database.backups.backup import backup
from registry.database.backups.restore import restore
from registry.profiles import profile_id
from registry.records.circuit_plans import circuit_plan_id
from registry.records.placements.saving import placement_id
from registry.records.simulations import simulation_id
from registry.records.traces import trace_id
from registry.registry import Registry
from tests.support import paths

EARLIER = paths.DATA / "dumps" / "schema-5.dump"


def test_what_is_read_of_an_earlier_dump_has_its_ids(registry: Registry) -> None:
    restore(registry.database, EARLIER)
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
    counts = [len(profiles), len(traces), len(placements), len(simulations), len(plans)]
    assert counts == [4, 1, 9, 4, 1]


def test_what_is_saved_again_adds_nothing(registry: Registry) -> None:
    restore(registry.database, EARLIER)
    before = registry.database.query("MATCH (n) RETURN count(n)")[1]
    placements = [registry.placements.read(one.id) for one in registry.placements.history()]
    assert registry.placements.save_many(placements) == tuple(one.id for one in placements)
    for simulation in registry.simulations.list():
        assert registry.simulations.save(registry.simulations.read(simulation.id)) == simulation.id
    for plan in registry.circuit_plans.list():
        assert registry.circuit_plans.save(registry.circuit_plans.read(plan.id)) == plan.id
    assert registry.database.query("MATCH (n) RETURN count(n)")[1] == before


def test_an_earlier_dump_is_dumped_as_it_was(registry: Registry, tmp_path: Path) -> None:
    restore(registry.database, EARLIER)
    backup(registry.database, tmp_path / "again")
    first, second = (_lines(path) for path in (EARLIER, tmp_path / "again"))
    assert second[1:-1] == first[1:-1]  # without the header's version and the digest
    counts = [json.loads(lines[0])["counts"] for lines in (first, second)]
    assert counts[1] == {**dict.fromkeys(counts[1], 0), **counts[0]}


def _lines(path: Path) -> list[bytes]:
    """Return the lines of a dump without those that begin a section: later versions have more, here empty."""
    lines = gzip.decompress(path.read_bytes()).splitlines()
    return [line for line in lines if not line.startswith(b'{"section":')]
