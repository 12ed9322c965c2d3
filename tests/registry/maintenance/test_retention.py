"""Retention: what is deleted of each kind, what never is, and the graph that is left, on both servers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from registry.errors import InputError, InvalidValue
from registry.fabrics import derived as graph
from registry.ingest_runs.runs import Attempt
from registry.maintenance import retention
from registry.maintenance.retention import Pruned, Rules, prune
from registry.maintenance.rules import Keep
from registry.model.intake import Intake
from registry.records.placements.records import PROPOSED
from registry.registry import Registry
from tests.registry.fabrics.test_fabrics import CONTENTS, A, derived, save
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
def test_the_graph_after_pruning_is_the_one_built_from_the_rest(
    registry: Registry, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        rows = registry.database.query("MATCH (r:CounterRollup) RETURN r.period, count(r)")[1]
        return dict(rows)

    before = periods()
    pruned(registry, counters="daily after 10 days, none after 20 days")
    after = periods()
    assert after["hour"] < before["hour"]
    assert after["day"] == 10
    total = registry.counters.between("toy", at(32 * DAY), at(38 * DAY))
    assert total.amount.tolist() == [[6 * DAY * 1000]]


def test_placements_of_running_jobs_and_of_simulated_and_measured_runs_stay(
    registry: Registry, full: FullCluster
) -> None:
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


def test_a_snapshot_that_gets_a_placement_meanwhile_is_kept(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_deletions_compare_fabrics_only_where_they_differ(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
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
