"""What runs at a time: which jobs, on which fabric, how placed, and what was advised."""

# mypy: disable-error-code="union-attr"

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from registry.errors import DatabaseError, UnknownName
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.running_jobs import AdviceRecord
from tests.support.busy_cluster import PROPOSED, advise, at, fill, job, place, statements_of
from tests.support.fat_tree import fat_tree, tree_tables
from tests.support.full_cluster import same


def ids(registry: Registry, when: datetime) -> list[str]:
    return [one.stored.job.id for one in registry.running("toy", when).jobs]


def test_a_job_runs_from_its_start_until_its_end(registry: Registry) -> None:
    jobs = job("ended", 2, 6), job("open", 4), job("later", 8, 9), job("waiting", None), job("first", 4)
    fill(registry, *jobs)
    fill(registry, job("open", 4), cluster="two")
    place(registry, "open", cluster="two")
    assert ids(registry, at(1)) == []
    assert ids(registry, at(2)) == ["ended"]
    assert ids(registry, at(5)) == ["first", "open", "ended"]
    assert ids(registry, at(6)) == ["first", "open"]
    assert ids(registry, at(8)) == ["later", "first", "open"]
    before = datetime.now(UTC)
    found = registry.running("toy")
    assert before <= found.at <= datetime.now(UTC)
    assert [(one.stored.cluster, one.present) for one in found.jobs] == [("toy", None)] * 2
    assert statements_of(registry, lambda counted: counted.running("toy", at(4))) == 1


def test_the_fabric_and_its_tables_are_those_of_the_time(registry: Registry) -> None:
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree()))
    early = registry.running("toy", at(1))
    assert (early.jobs, early.snapshot.routing, early.snapshot.fabric.tables) == ((), None, None)
    tables = tree_tables()
    registry.save(Intake(cluster="toy", observed_at=at(2), tables=tables))
    registry.save(Intake(cluster="toy", observed_at=at(5), fabric=fat_tree(without=(0,))))
    for when in (at(3), at(6)):
        found, expected = registry.running("toy", when).snapshot, registry.fabrics.read("toy", when)
        assert (found.id, found.routing) == (expected.id, expected.routing)
        assert found.observed_at == expected.observed_at
        assert found.fabric.names == expected.fabric.names
        assert same(found.fabric.tables, tables)


def test_a_job_comes_with_its_latest_hosts_and_profile_if_known(registry: Registry) -> None:
    fill(registry, job("7", 2), job("8", 1, hosts=()))
    registry.save(Intake(cluster="toy", observed_at=at(3), jobs=(job("7", 2, hosts=("node01",)),)))
    registry.jobs.attach("7", "pair")
    registry.jobs.attach("7", "ring")
    found, unknown = registry.running("toy", at(4)).jobs
    assert found.stored == registry.jobs.read("7")
    assert found.stored.job.hosts == ("node01",)
    assert (found.application, found.stored.profile) == ("cg", registry.profiles.read("ring").id)
    assert (unknown.application, unknown.present, unknown.advice) == (None, None, None)
    assert unknown.stored.job.hosts == ()


def test_the_newest_reported_placement_is_the_present_one(registry: Registry) -> None:
    fill(registry, job("7", 2))
    place(registry, "7", ranks=(0, 1, 0))
    newest = place(registry, "7", ranks=(1, 0, 0), seconds=3.0)
    place(registry, "7", ranks=(1, 1, 0), role=PROPOSED)
    place(registry, None, ranks=(0, 1, 1))
    (found,) = registry.running("toy", at(4)).jobs
    stored = registry.placements.read(newest)
    present = found.present
    assert (present.id, present.recorded_at) == (newest, stored.recorded_at)
    about = (present.snapshot, present.tables, present.profile)
    assert about == (stored.content, stored.routing, stored.profile)
    assert (present.routing, present.rails) == ("tables", "all-connected")
    assert present.metrics.congestion_seconds == 3.0
    assert np.array_equal(present.placement.host_of_rank, stored.placement.host_of_rank)
    assert np.array_equal(present.placement.allocation.slots, stored.placement.allocation.slots)
    assert np.array_equal(present.loads.dense(), stored.evaluation.link_bytes)


def test_a_placement_may_have_no_metrics_and_missing_hosts(registry: Registry) -> None:
    fill(registry, job("7", 2))
    place(registry, "7", evaluated=False)
    (found,) = registry.running("toy", at(4)).jobs
    assert (found.present.metrics, found.present.loads, found.present.rails) == (None, None, "")
    registry.save(Intake(cluster="toy", observed_at=at(5), fabric=fat_tree(renamed={"node03": "spare"})))
    (found,) = registry.running("toy", at(6)).jobs
    assert (found.present.placement, found.present.missing_hosts) == (None, ("node03",))


def test_a_placement_on_an_older_fabric_is_carried_over_by_names(registry: Registry) -> None:
    fill(registry, job("7", 2))
    place(registry, "7")
    renamed = fat_tree(renamed={"node01": "aaa"})  # vertices are sorted by name: all others move
    registry.save(Intake(cluster="toy", observed_at=at(5), fabric=renamed))
    before, after = (registry.running("toy", when) for when in (at(4), at(6)))
    old, new = before.jobs[0].present, after.jobs[0].present
    assert (old.loads is None, new.loads is None) == (False, True)
    for placement, running in ((old.placement, before), (new.placement, after)):
        names = running.snapshot.fabric.names
        assert [names[v] for v in placement.host_of_rank] == ["node03", "node03", "node00"]
        assert [names[v] for v in placement.allocation.hosts] == ["node03", "node00"]
        assert placement.allocation.slots.tolist() == [2, 2]
    assert not np.array_equal(old.placement.host_of_rank, new.placement.host_of_rank)


def test_the_newest_advice_is_returned(registry: Registry) -> None:
    fill(registry, job("7", 2), job("8", 2))
    present = place(registry, "7")
    advise(registry, "7", present, None, when=at(20))
    advise(registry, "7", present, None, when=at(10))
    first, second = registry.running("toy", at(4)).jobs
    assert first.advice.at == at(20)
    assert second.advice is None


def test_an_unknown_cluster_is_an_error_with_the_closest(registry: Registry) -> None:
    fill(registry)
    with pytest.raises(UnknownName, match="closest: toy"):
        registry.running("toi")
    with pytest.raises(UnknownName, match="was not observed at or before"):
        registry.running("toy", at(-1))


def test_a_damaged_present_placement_is_an_error(registry: Registry) -> None:
    fill(registry, job("7", 2))
    place(registry, "7")
    registry.database.write(lambda tx: tx.run("MATCH (p:Placement) SET p.host_of_rank = $b", b=b"x"))
    with pytest.raises(DatabaseError, match="damaged"):
        registry.running("toy", at(4))


@pytest.fixture
def placed(registry: Registry) -> Registry:
    """Three jobs, the last of which has ended."""
    return fill(registry, job("7", 2), job("8", 2), job("9", 2, 5))


def test_saved_advice_is_read_back_and_joined_to_its_job_and_placements(placed: Registry) -> None:
    present = place(placed, "7")
    proposed = place(placed, "7", role=PROPOSED, seconds=2.0)
    (before,) = placed.fabrics.clusters()
    record = advise(placed, "7", present, proposed, in_background=3, moved=2)
    advise(placed, "7", present, proposed, in_background=3, moved=2)
    (found,) = placed.advices.list()
    for name in record.__slots__:
        assert getattr(found, name) == getattr(record, name)
    assert (found.gain, found.id) == (2.0, "toy/7/2026-01-01T00:10:00+00:00")
    advise(placed, "8", present, None)
    _, rows = placed.database.query(
        "MATCH (j:Job)-[:HAS_ADVICE]->(a:Advice)-[:OF]->(p:Placement) "
        "OPTIONAL MATCH (a)-[:PROPOSES]->(q:Placement) RETURN j.job, p.id, q.id, a.gain ORDER BY j.job"
    )
    assert rows == [("7", present, proposed, 2.0), ("8", present, None, 1.0)]
    (after,) = placed.fabrics.clusters()
    assert after.version > before.version


GAINS = [(None, 1.0, 1.0), ("p", 2.0, 2.0), ("p", 5.0, 1.0), ("p", 0.0, 1.0)]


@pytest.mark.parametrize(("proposed", "seconds", "gain"), GAINS)
def test_a_gain_is_present_over_proposed_and_at_least_1(proposed: Any, seconds: float, gain: float) -> None:
    given: dict[str, Any] = {"cluster": "c", "job": "7", "at": at(0), "present": "q", "proposed": proposed}
    assert AdviceRecord(**given, present_seconds=4.0, proposed_seconds=seconds).gain == gain


def test_the_newest_of_each_job_is_listed_the_largest_gain_first(placed: Registry) -> None:
    present = place(placed, "7")
    for name, minute, seconds in (("7", 10, 0.5), ("7", 12, 3.0), ("8", 11, 1.0), ("9", 3, 2.0)):
        advise(placed, name, present, present, when=at(minute), proposed_seconds=seconds)
    found = [(one.job, one.gain) for one in placed.advices.list("toy")]
    assert found == [("8", 4.0), ("9", 2.0), ("7", 4 / 3)]
    assert [one.job for one in placed.advices.list("toy", limit=1)] == ["8"]
    assert [one.job for one in placed.advices.list("toy", running_at=at(20))] == ["8", "7"]
    assert placed.advices.list("two") == ()


def test_advice_on_an_unknown_job_or_placement_is_refused_and_nothing_is_saved(placed: Registry) -> None:
    present = place(placed, "7")
    given: dict[str, Any] = {"cluster": "toy", "job": "7", "at": at(9), "present": present}
    good = AdviceRecord(**given, present_seconds=1.0, proposed_seconds=1.0)
    for name in ("job", "present", "proposed"):
        changed: dict[str, Any] = {"at": at(10), name: "none"}
        with pytest.raises(UnknownName, match="'none'"):
            placed.advices.save([good, replace(good, **changed)])
    assert placed.advices.list() == ()
    assert placed.advices.save([]) == ()
