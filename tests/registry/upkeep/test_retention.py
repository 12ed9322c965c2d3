"""Retention: what is deleted of each kind, what never is, the graph that is left; sizes of what is stored."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.database.driver import Database
from registry.errors import InputError, InvalidValue
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store import derived as graph
from registry.store.ingest_runs import Attempt
from registry.store.placement_rows import PROPOSED
from registry.upkeep import retention
from registry.upkeep.restore import restore
from registry.upkeep.retention import Pruned, Rules, StoredSize, file_bytes, free_bytes, prune, stored_sizes
from registry.upkeep.rules import Item, Keep
from tests.registry.store.test_fabrics import CONTENTS, A, derived, save
from tests.support import paths
from tests.support.busy_cluster import fill, job, place
from tests.support.fat_tree import at, fat_tree, tree_tables
from tests.support.full_cluster import DAY, FullCluster, node_counts, sweep


def rules(**texts: str) -> Rules:
    return Rules(**{name: Keep.parse(text) for name, text in texts.items()})


def pruned(registry: Registry, days: float = 400, **texts: str) -> Pruned:
    """Prune at a time in days after the first minute."""
    return prune(registry.database, rules(**texts), at(days * DAY))


def minutes(registry: Registry, cluster: str = "toy") -> list[float]:
    return [(one.at - at(0)) / timedelta(minutes=1) for one in registry.fabrics.observations(cluster)]


def test_without_rules_nothing_is_deleted(registry: Registry, full: FullCluster) -> None:
    before = node_counts(registry.database)
    assert prune(registry.database, Rules(), at(999 * DAY)) == Pruned()
    assert node_counts(registry.database) == before


@pytest.mark.parametrize("rule", ["daily", "newest 3", "daily after 2 days, none after 3 days"])
def test_the_graph_after_pruning_is_that_of_the_rest(registry: Registry, rule: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(retention, "OBSERVATIONS_A_TRANSACTION", 2)
    for number in range(12):
        save(registry, CONTENTS[number % 4], number * DAY / 3)
    before = minutes(registry)
    gone = pruned(registry, observations=rule)
    left = minutes(registry)
    assert gone.deleted == {"toy": {"observations": len(before) - len(left)}}
    assert 1 < len(left) < len(before)
    for minute in left:
        save(registry, CONTENTS[before.index(minute) % 4], minute, cluster="new")
    assert derived(registry.database, "toy") == derived(registry.database, "new")
    assert pruned(registry, observations=rule).deleted == {}


def test_the_newest_of_each_source_and_what_results_refer_to_stay(registry: Registry) -> None:
    fill(registry)  # tables and fabric at minute 0
    registry.save(Intake(cluster="toy", observed_at=at(1), tables=tree_tables(hosts=3), source="tables"))
    for number in range(2, 7):
        save(registry, CONTENTS[number % 4], number)
    place(registry, None, when=at(3))  # on the snapshot of minutes 3, with the tables of minute 1
    gone = pruned(registry, observations="newest 1")
    assert gone.deleted == {"toy": {"observations": 3}}
    assert minutes(registry) == [0, 1, 3, 6]


def test_a_dry_run_counts_what_would_be_deleted(registry: Registry) -> None:
    fill(registry)
    for number in range(1, 5):
        save(registry, CONTENTS[number % 4], number)
    old = place(registry, None, when=at(3))
    new = place(registry, None, when=at(3), ranks=(1, 1, 0))
    registry.save(Intake(cluster="toy", counters=tuple(sweep(n * DAY) for n in range(0, 400, 10))))
    before = node_counts(registry.database)
    wanted = rules(observations="newest 1", placements="newest 1", counters="none after 90 days")
    planned = prune(registry.database, wanted, at(400 * DAY), dry_run=True)
    assert node_counts(registry.database) == before
    assert prune(registry.database, wanted, at(400 * DAY)) == planned
    assert planned.deleted["toy"]["observations"] == 2  # one of three has the placement that is kept
    assert planned.deleted["toy"]["placements"] == 1
    assert planned.deleted["toy"]["counters"] == 29  # of 39 intervals between two sweeps
    assert [one.id for one in registry.placements.history("toy")] == [new]
    assert old != new


def test_counters_are_summed_by_day_and_end(registry: Registry) -> None:
    save(registry, A, 0)
    registry.save(Intake(cluster="toy", counters=tuple(sweep(n * DAY / 2) for n in range(80))))

    def periods() -> dict[str, int]:
        return dict(registry.database.query("MATCH (r:CounterRollup) RETURN r.period, count(r)")[1])

    before = periods()
    pruned(registry, counters="daily after 10 days, none after 20 days")
    after = periods()
    assert after["hour"] < before["hour"]
    assert after["day"] == 10
    total = registry.counters.between("toy", at(32 * DAY), at(38 * DAY))
    assert total.amount.tolist() == [[6 * DAY * 1000]]


def test_placements_of_running_jobs_and_of_stored_runs_stay(registry: Registry, full: FullCluster) -> None:
    fill(registry, job("ended", 2, 50), job("running", 3))
    for number in range(4):
        for name in ("ended", "running"):
            place(registry, name, role=PROPOSED, ranks=(0, number % 2, 1), when=at(0), strategy=f"s{number}")
    before = len(registry.placements.history("toy"))
    pruned(registry, placements="newest 1")
    left = registry.placements.history("toy")
    assert before - len(left) == 4  # those of the job that has ended
    assert {one.id for one in left} >= {full.traced, full.placement}
    assert sum(one.job == "ended" for one in left) == 0
    assert sum(one.job == "running" for one in left) == 4
    registry.database.write(lambda t: t.run("MATCH (j:Job) SET j.ended_at = $at", at=at(9)))
    assert pruned(registry, placements="none").skipped == 0
    assert {one.id for one in registry.placements.history("toy")} >= {full.traced, full.proposed}


def test_the_last_and_the_last_good_run_of_each_source_stay(registry: Registry) -> None:
    scan = Intake(cluster="toy", source="scan", files=("f",))
    for minute in range(6):
        seen = replace(scan, observed_at=at(minute), fabric=CONTENTS[minute % 4], started_at=at(minute))
        registry.save(seen)
    for minute in (7, 8):
        registry.failed(Attempt(started_at=at(minute), cluster="toy", formats=("scan",)), InputError("no"))
    gone = pruned(registry, runs="none after 0 days")
    assert gone.deleted == {"toy": {"runs": 6}}
    assert [one.at for one in registry.runs.list()] == [at(8), at(5)]
    (state,) = registry.runs.sources("toy")
    assert (state.last_at, state.last_good_at) == (at(8), at(5))


def test_a_snapshot_that_gets_a_placement_meanwhile_is_kept(registry: Registry, monkeypatch: Any) -> None:
    fill(registry)
    for number in range(1, 5):
        save(registry, CONTENTS[number % 4], number)
    monkeypatch.setattr(retention._Pruning, "_referred", lambda *_: iter(()))
    place(registry, None, when=at(3))
    gone = pruned(registry, observations="newest 1")
    assert (gone.deleted, gone.skipped) == ({}, 3)
    assert len(minutes(registry)) == 5


def test_an_interrupted_run_is_continued(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "OBSERVATIONS_A_TRANSACTION", 1)
    for number in range(6):
        save(registry, CONTENTS[number % 4], number)

    def interrupt(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prune(registry.database, rules(observations="newest 1"), at(9), progress=interrupt)
    assert minutes(registry) == [0, 1, 2, 5]
    before = derived(registry.database, "toy")
    registry.fabrics.rebuild("toy")
    assert derived(registry.database, "toy") == before
    assert pruned(registry, observations="newest 1").deleted == {"toy": {"observations": 3}}


def test_rules_that_counters_cannot_follow_are_refused() -> None:
    for rule in ("weekly", "newest 5", "daily after 3 days", "daily after 99 days", "none"):
        with pytest.raises(InvalidValue, match="rule of counters"):
            rules(counters=rule)


def test_deletions_compare_fabrics_only_where_they_differ(registry: Registry, monkeypatch: Any) -> None:
    for number in range(9):
        save(registry, fat_tree(without=(number // 3,)), number)
    applied: list[Any] = []
    real = graph.apply

    def apply(*given: Any) -> Any:
        applied.append(given[3])
        return real(*given)

    monkeypatch.setattr(graph, "apply", apply)
    pruned(registry, observations="newest 1")
    assert [after is None for after in applied] == [False, False, True]


NEW = datetime(2026, 3, 31, 23, tzinfo=UTC)
HOURS = [Item(str(hour), NEW - timedelta(hours=hour)) for hour in range(24 * 60)]
"""One item an hour over 60 days; item 0 is the newest, item 24 the last one of the day before."""


THREE_PARTS = "daily after 1 day, weekly after 10 days, none after 40 days"


def kept(rule: str, items: list[Item] = HOURS, now: datetime = NEW) -> list[int]:
    gone = Keep.parse(rule).delete(items, now)
    return [int(item.id) for item in items if item.id not in gone]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("all", [*range(1440)]),
        ("daily", [*range(0, 1440, 24)]),
        # 31 March 2026 is a Tuesday: the last items of the weeks before are those of Sunday, 23 h
        ("weekly", [0, *range(48, 1440, 168)]),
        ("daily after 30 days", [*range(720), *range(720, 1440, 24)]),
        ("none after 2 days", [*range(48)]),
        # a week that is half daily, half weekly keeps its last one of the older half
        (THREE_PARTS, [*range(24), *range(24, 240, 24), 240, 384, 552, 720, 888]),
    ],
)
def test_the_last_of_each_period_is_kept(rule: str, expected: list[int]) -> None:
    assert kept(rule) == expected


def test_the_newest_of_each_group_is_never_deleted() -> None:
    items = [Item(str(n), NEW - timedelta(hours=n), ("odd" if n % 2 else "even",)) for n in range(10)]
    assert kept("newest 2", items) == [0, 1, 2, 3]
    assert kept("newest 0", items) == [0, 1]
    items = [Item("0", NEW), Item("1", NEW - timedelta(days=900), ("old",))]
    assert kept("none after 1 day", items) == [0, 1]
    # a clock that is wrong deletes nothing more
    assert kept("none after 90 days", now=NEW + timedelta(days=36500)) == list(range(1440))


@given(st.lists(st.integers(0, 5000), unique=True, max_size=60), st.sampled_from(["daily", "weekly"]))
def test_one_of_each_period_is_kept_and_pruning_again_deletes_nothing(hours: list[int], rule: str) -> None:
    items = [Item(str(hour), NEW - timedelta(hours=hour)) for hour in hours]
    left = [item for item in items if item.id not in Keep.parse(rule).delete(items, NEW)]

    def periods(some: list[Item]) -> list[Any]:
        return [item.at.date() if rule == "daily" else item.at.isocalendar()[:2] for item in some]

    assert sorted(set(periods(items))) == sorted(periods(left))
    assert Keep.parse(rule).delete(left, NEW) == set()


NO_RULES = [
    *("", "some", "daily after", "daily after 3", "daily after x days", "newest", "newest -1", "monthly")
]
NO_RULES += ["newest 3, none after 5 days", "newest 3 after 5 days", "daily, daily", "all; none"]
NO_RULES += ["daily after 9 days, weekly after 3 days"]


def test_what_is_no_rule_is_refused_but_blanks_and_capitals_do_not_matter() -> None:
    for text in NO_RULES:
        with pytest.raises(InvalidValue, match=r"rule|newest|ascend"):
            Keep.parse(text)
    plain = Keep.parse("daily after 1 days, none after 9 days")
    assert Keep.parse(" Daily  after 1 day ,none after 9 days") == plain


STATEMENTS = {
    "placements": "MATCH (p:Placement) OPTIONAL MATCH (p)-[:HAS_LOADS]->(l) RETURN p.host_of_rank, l.blob",
    "snapshots": "MATCH (n:Content {cluster: 'hpc1'}) RETURN n.blob",
    "forwarding tables": "MATCH (:Routing {cluster: 'hpc1'})-[:HAS_TABLE]->(t) RETURN t.ports",
    "counter sweeps": "MATCH (n:CounterSweep) RETURN n.blob",
}


def test_sizes_are_those_of_the_stored_arrays(registry: Registry) -> None:
    database = registry.database
    assert stored_sizes(database) == ()
    restore(database, paths.DATA / "dumps" / "schema-4.dump")
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), tables=tree_tables()))
    found = {(one.cluster, one.kind): one for one in stored_sizes(database)}
    for (kind, statement), count in zip(STATEMENTS.items(), (4, 2, 4, 2), strict=True):
        size = sum(len(blob) for row in database.query(statement)[1] for blob in row if blob is not None)
        expected = StoredSize(cluster="hpc1", kind=kind, count=count, bytes=size)
        assert found["hpc1", kind] == expected
    assert {key for key in found if key[0] == "toy"} == {("toy", "snapshots"), ("toy", "forwarding tables")}


def test_space_on_the_disk_is_known_of_the_embedded_server_only(database: Database) -> None:
    free, files = free_bytes(database), file_bytes(database)
    if database.kind == "neo4j":
        assert (free, files) == (None, None)
    else:
        assert database.folder is not None
        assert abs((free or 0) - shutil.disk_usage(database.folder).free) < 1e9
        assert (files or 0) > 1_000_000
