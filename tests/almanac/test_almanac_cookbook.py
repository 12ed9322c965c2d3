"""Every question of docs/reference/cookbook.md, against the same counted by other means."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from ingest.options import Options
from ingest.pipeline import ingest
from mapping.placement.search import SearchOptions
from mapping.questions.place import PlacementRequest, place
from registry.errors import InputError
from registry.model import Job
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.running_jobs import AdviceRecord, Advices
from tests.almanac.conftest import Almanac
from tests.support.paths import DATA, ROOT

COOKBOOK = ROOT / "docs" / "reference" / "cookbook.md"
TREE = DATA / "infiniband" / "fattree2-64-broken-link"
FIRST = datetime(2026, 1, 1, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOSTS = tuple(f"node{number:04}" for number in range(1, 9))
GIVEN: dict[str, str] = {
    "cluster": "tree", "start": "2026-01-01T08:30:00Z", "end": "2026-01-01T09:30:00Z",
    "at": "2026-01-01T09:30:00Z", "host": "node0001", "switch": "leaf01", "profile": "cg",
}  # fmt: skip
Rows = list[dict[str, Any]]


def questions() -> dict[int, str]:
    text = COOKBOOK.read_text("utf-8")
    parts = re.findall(r"^## (\d+)\. .*?^```cypher\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return {int(number): statement for number, statement in parts}


@dataclass(frozen=True, kw_only=True)
class Filled:
    registry: Registry
    first: str
    second: str

    def ask(self, number: int, **more: Any) -> Rows:
        statement = questions()[number]
        wanted = set(re.findall(r"\$(\w+)", statement))
        given = {name: value for name, value in {**GIVEN, **more}.items() if name in wanted}
        columns, rows = self.registry.database.query(statement, **given)
        return [dict(zip(columns, row, strict=True)) for row in rows]


def fill(registry: Registry) -> tuple[str, str]:
    """A fabric that lost two cables for an hour, two jobs on it, one placed twice, one with advice."""
    for hour, name in enumerate(("before.ibnetdiscover", "ibnetdiscover.txt", "before.ibnetdiscover")):
        ingest(registry, [TREE / name], Options(cluster="tree", observed_at=FIRST + hour * HOUR))
    edges = DATA / "edges" / "npb_cg_S_16.csv.gz"
    with pytest.raises(InputError):
        ingest(registry, [edges], Options(cluster="tree", format="ibnetdiscover"))
    ingest(registry, [edges], Options(name="cg"))
    jobs = (
        Job(id="1", user="ann", state="RUNNING", started_at=FIRST, hosts=HOSTS, slots=(2,) * 8),
        Job(id="2", user="bob", state="RUNNING", started_at=FIRST + HOUR, hosts=HOSTS[:1], slots=(3,)),
    )
    registry.save(Intake(cluster="tree", jobs=jobs, source="test", observed_at=FIRST + HOUR))
    registry.jobs.attach("1", "cg", "tree")
    request = PlacementRequest(profile="cg", job="1", cluster="tree")
    first, second = (
        place(registry, replace(request, options=SearchOptions(steps=steps, seed=seed))).record_id
        for steps, seed in ((1, 0), (20_000, 1))
    )
    advice = AdviceRecord(
        cluster="tree", job="1", at=FIRST + HOUR, present=first, proposed=second,
        present_seconds=3.0, proposed_seconds=2.0, in_background=1, moved=5,
    )  # fmt: skip
    Advices(registry.database).save([advice])
    return first, second


def test_every_question_is_numbered_in_order_and_checked() -> None:
    assert list(questions()) == list(range(1, len(questions()) + 1))
    assert len(questions()) >= 12
    assert set(questions()) == set(CHECKS)


def test_every_question_is_answered(almanac: Almanac, registry: Registry) -> None:
    by_command = ("query", questions()[4], "-p", "cluster=x", "-p", "host=h", "-p", f"at={GIVEN['at']}")
    assert almanac.json(*by_command) == []
    first, second = fill(registry)
    filled = Filled(registry=registry, first=first, second=second)
    for check in CHECKS.values():
        check(filled)


def wirings(filled: Filled) -> None:
    rows = filled.ask(1)
    seen = filled.registry.fabrics.observations("tree")
    assert [row["wiring"] for row in rows] == [seen[0].snapshot, seen[1].snapshot]
    assert [row["observations"] for row in rows] == [2, 1]
    assert (rows[0]["first_seen"], rows[0]["last_seen"]) == (seen[0].at, seen[2].at)
    assert rows[0]["cables"] == rows[1]["cables"] + 2


def ups_and_downs(filled: Filled) -> None:
    changes = filled.registry.fabrics.changes("tree", FIRST, FIRST + HOUR)
    cables = changes.cables_vanished
    expected = {(cable.source, cable.source_port) for cable in cables}
    expected |= {(cable.target, cable.target_port) for cable in cables}
    rows = filled.ask(2)
    assert {row["what"] for row in rows} == {"down"}
    assert {(row["device"], row["port"]) for row in rows} == expected
    assert len(rows) == len(expected) == 4


def flapping(filled: Filled) -> None:
    downs = {(row["device"], row["port"]) for row in filled.ask(2)}
    rows = filled.ask(3)
    assert {(row["device"], row["port"]) for row in rows} == downs
    assert {row["times"] for row in rows} == {2}


def wired_to(filled: Filled) -> None:
    fabric = filled.registry.fabrics.read("tree", FIRST + HOUR).fabric
    vertex = fabric.names.index(GIVEN["host"])
    links = fabric.links
    expected = {
        (fabric.names[links.target[k]], int(links.target_port[k]), float(links.capacity[k]))
        for k in np.flatnonzero(links.source == vertex)
    }
    assert {(r["to_device"], r["to_port"], r["bytes_per_second"]) for r in filled.ask(4)} == expected
    assert filled.ask(4, host="node0042") == []
    assert len(filled.ask(4, host="node0042", at="2026-01-01T08:30:00Z")) == 1


def jobs_of_a_host(filled: Filled) -> None:
    rows = filled.ask(5)
    assert [(row["job"], row["user"], row["ranks_on_host"]) for row in rows] == [
        ("2", "bob", 3),
        ("1", "ann", 2),
    ]
    assert rows[0]["started_at"] == FIRST + HOUR


def jobs_under_a_switch(filled: Filled) -> None:
    fabric = filled.registry.fabrics.read("tree", FIRST + HOUR).fabric
    links = fabric.links
    first = fabric.names.index("node0001")
    switch = int(links.target[links.source == first][0])
    below = {fabric.names[v] for v in links.target[links.source == switch]}
    rows = filled.ask(6, switch=fabric.names[switch])
    expected = [("1", len(below & set(HOSTS))), ("2", 1)]
    assert [(row["job"], row["hosts"]) for row in rows] == expected


def loads_of_a_cable(filled: Filled) -> None:
    stored = filled.registry.placements.read(filled.first)
    fabric = filled.registry.fabrics.read("tree").fabric
    assert stored.evaluation is not None
    link = int(np.argmax(stored.evaluation.link_bytes / fabric.links.capacity))
    device, port = fabric.names[fabric.links.source[link]], int(fabric.links.source_port[link])
    rows = filled.ask(7, device=device, port=port)
    mine = next(row for row in rows if row["placement"] == filled.first)
    assert mine["bytes"] == stored.evaluation.link_bytes[link]
    assert mine["seconds"] == pytest.approx(stored.evaluation.congestion_seconds)
    assert mine["job"] == "1"


def hot_for_many(filled: Filled) -> None:
    expected: dict[tuple[str, int], int] = {}
    fabric = filled.registry.fabrics.read("tree").fabric
    for identity in (filled.first, filled.second):
        evaluation = filled.registry.placements.read(identity).evaluation
        assert evaluation is not None
        seconds = evaluation.link_bytes / fabric.links.capacity
        for k in np.flatnonzero(seconds >= 0.9 * seconds.max()).tolist():
            end = fabric.names[fabric.links.source[k]], int(fabric.links.source_port[k])
            expected[end] = expected.get(end, 0) + 1
    rows = filled.ask(8)
    found = {(row["device"], row["port"]): row["placements"] for row in rows}
    assert found.items() <= expected.items()
    assert len(found) == min(50, len(expected))
    assert {row["applications"] for row in rows} == {1}


def quality(filled: Filled) -> None:
    infos = filled.registry.placements.history()
    (row,) = filled.ask(9)
    over = [p.congestion_seconds / p.bounds["congestion_seconds"] for p in infos if p.congestion_seconds]
    gain = [
        p.in_order.congestion_seconds / p.congestion_seconds
        for p in infos
        if p.in_order and p.congestion_seconds
    ]
    assert row["placements"] == len(over) == 2
    assert row["over_bound"] == pytest.approx(np.mean(over))
    assert row["gain"] == pytest.approx(np.mean(gain))


def best_strategy(filled: Filled) -> None:
    infos = filled.registry.placements.history()
    best = min(infos, key=lambda info: (info.congestion_seconds, info.recorded_at))
    assert filled.ask(10) == [
        {
            "profile": "cg",
            "strategy": best.strategy,
            "seconds": best.congestion_seconds,
            "placement": best.id,
            "tried": 2,
        }
    ]


def months(filled: Filled) -> None:
    (row,) = filled.ask(11)
    at = filled.registry.placements.history()[0].recorded_at
    assert (row["year"], row["month"], row["placements"]) == (at.year, at.month, 2)
    assert row["over_bound"] == pytest.approx(filled.ask(9)[0]["over_bound"])


def gains(filled: Filled) -> None:
    assert filled.ask(12) == [{"user": "ann", "jobs": 1, "largest_gain": 1.5, "ranks_to_move": 5}]


def talkers(filled: Filled) -> None:
    profile = filled.registry.profiles.read("cg").profile
    order = np.lexsort((profile.partner, profile.sender, -profile.bytes))[:20]
    expected = [(int(profile.sender[k]), int(profile.partner[k]), float(profile.bytes[k])) for k in order]
    assert [(row["sender"], row["receiver"], row["bytes"]) for row in filled.ask(13)] == expected


def runs(filled: Filled) -> None:
    rows = {(row["cluster"], row["format"]): row for row in filled.ask(14)}
    every = filled.registry.runs.list()
    for (cluster, format), row in rows.items():
        mine = [run for run in every if run.cluster == cluster and format in run.formats]
        assert row["runs"] == len(mine)
        assert row["failed"] == sum(run.outcome == "failed" for run in mine)
        assert row["mean_seconds"] == pytest.approx(np.mean([run.seconds for run in mine]))
        assert row["last_at"] == max(run.at for run in mine)
    assert sum(row["failed"] for row in rows.values()) == 1
    assert filled.ask(14)[0]["failed"] == 1


CHECKS: dict[int, Callable[[Filled], None]] = dict(
    enumerate(
        (
            *(wirings, ups_and_downs, flapping, wired_to, jobs_of_a_host, jobs_under_a_switch),
            *(loads_of_a_cable, hot_for_many, quality, best_strategy, months, gains, talkers, runs),
        ),
        start=1,
    )
)
