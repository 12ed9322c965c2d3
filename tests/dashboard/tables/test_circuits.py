"""Tables and figures of proposed circuits: pure functions of a plan."""

from __future__ import annotations

import math
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest

from dashboard.figures.circuits import circuit_matrix, throughput_bars, trail_chart
from dashboard.figures.style import DARK, LIGHT
from dashboard.tables.circuits import (
    INSERTED,
    PRESENT,
    PROPOSED,
    REMOVED,
    UNCHANGED,
    UPPER_BOUND,
    about,
    circuits_table,
    facts,
    moves_table,
    option_text,
    plans_table,
    routes_table,
    throughputs,
    trail_table,
)
from dashboard.widgets.tables import csv_text
from registry.records.circuit_plans import CircuitPlanInfo, StoredCircuitPlan
from tests.dashboard.test_figures import rows_of, spec
from tests.registry.model.test_circuit_plan import circuit_plan, circuit_routes, reconfiguration_record

AT = datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC)
UNKNOWN: dict[str, Any] = {
    "present_source": [],
    "present_target": [],
    **dict.fromkeys(("present_throughput", "gain", "break_even_seconds"), math.nan),
}
UNLIMITED: dict[str, Any] = {
    **dict.fromkeys(
        ("throughput", "compute_throughput", "communication_throughput", "upper_bound"), math.inf
    ),
    "trail_throughput": [math.inf] * 3,
    "link_load": [0.0] * 3,
}


def stored(**changed: Any) -> StoredCircuitPlan:
    record = reconfiguration_record(hosts=("n0", "=n1", "n2", "n3"), plan=circuit_plan(**changed))
    told = {name: getattr(record, name) for name in record.__slots__}
    return StoredCircuitPlan(**told, id="r1", recorded_at=AT)


def info(**changed: Any) -> CircuitPlanInfo:
    """What a list has of that plan, for two jobs of a cluster."""
    record, plan = reconfiguration_record(), circuit_plan()
    found: dict[str, Any] = {field.name: getattr(plan, field.name, None) for field in fields(CircuitPlanInfo)}
    found |= {name: getattr(record, name) for name in ("wall_seconds", "code_version", "parameters")}
    found |= {"id": "r1", "recorded_at": AT, "cluster": "toy", "profiles": ("f", "f"), "jobs": ("1", "2")}
    found |= {"profile_names": ("run",), "applications": ("cg",), "circuits": 3, "removed": 1, "inserted": 1}
    return CircuitPlanInfo(**(found | changed))


def test_a_plan_is_a_row_or_a_text_and_what_is_unknown_is_empty() -> None:
    rows = plans_table([info(), info(id="r2", cluster=None, jobs=(), gain=None, removed=None, applied_at=AT)])
    assert rows["plan"].tolist() == ["r1", "r2"]
    assert rows["cluster"].tolist() == ["toy", ""]
    assert rows["for"].tolist() == ["2 running jobs: run", "run"]
    assert rows["gain (times)"].tolist()[0] == 2.0
    assert rows[["gain (times)", "removed"]].iloc[1].isna().all()
    assert str(rows["saved at (UTC)"].iloc[0]) == "2026-01-02 03:04:05"
    assert rows["applied at (UTC)"].isna().tolist() == [True, False]
    assert len(plans_table([])) == 0
    assert option_text(info()) == "toy · 2 running jobs: run · 2 × · 2026-01-02 03:04:05 UTC · r1"
    assert about(info(jobs=("1",))) == "1 running job: run"


def test_circuits_are_listed_by_hosts_with_their_change() -> None:
    table = circuits_table(stored())
    rows = table[["a", "b", "what", "bytes"]].to_numpy().tolist()
    assert rows == [
        ["n0", "=n1", UNCHANGED, 40.0],
        ["n0", "n3", INSERTED, 10.0],
        ["=n1", "n2", REMOVED, 0.0],
        ["n2", "n3", UNCHANGED, 0.0],
    ]
    assert table["busy"].tolist() == pytest.approx([0.4, 0.1, 0.0, 0.0])
    assert "'=n1" in csv_text(table)


def test_without_known_circuits_all_are_put_in() -> None:
    assert set(circuits_table(stored(**UNKNOWN))["what"]) == {INSERTED}
    assert moves_table(stored(**UNKNOWN))["what"].tolist() == [INSERTED] * 3
    told = facts(stored(**UNKNOWN))
    assert (told["Gain"], told["Moves"], told["Pays after"]) == ("not known", "3", "not known")


def test_circuits_to_remove_come_before_those_to_add() -> None:
    assert moves_table(stored()).to_numpy().tolist() == [[REMOVED, "=n1", "n2"], [INSERTED, "n0", "n3"]]
    assert facts(stored()) == {"Profiles/s": "1", "Gain": "2 ×", "Moves": "2", "Pays after": "6 s"}
    assert facts(stored(gain=1.0, break_even_seconds=math.inf))["Pays after"] == "never"


def test_throughput_is_compared_as_far_as_it_is_known() -> None:
    rows = throughputs(circuit_plan())
    assert rows.set_index("series")["value"].to_dict() == {PRESENT: 0.5, PROPOSED: 1.0, UPPER_BOUND: 1.25}
    assert throughputs(circuit_plan(**UNKNOWN))["series"].tolist() == [PROPOSED, UPPER_BOUND]
    assert len(throughputs(circuit_plan(**UNKNOWN, **UNLIMITED))) == 0


def test_the_trail_has_iterations_and_the_best_until_then() -> None:
    rows = trail_table(circuit_plan())
    assert rows["iteration"].tolist() == [0, 1, 2]
    assert rows["best"].tolist() == [0.5, 1.0, 1.0]
    assert rows["bottleneck"].tolist() == ["communication", "compute", "communication"]
    assert trail_table(circuit_plan(**UNLIMITED))["throughput"].isna().all()


@pytest.mark.parametrize(
    ("changed", "theme"),
    [({}, LIGHT), (UNKNOWN, DARK), (UNLIMITED, LIGHT)],
    ids=["known", "unknown", "without limit"],
)
def test_figures_draw_what_the_tables_hold(changed: dict[str, Any], theme: str) -> None:
    one = stored(**changed)
    table = circuits_table(one)
    matrix = spec(circuit_matrix(table, 4, theme))
    drawn = {(row["across"], row["down"]) for row in rows_of(matrix)}
    pairs = set(zip(table["a node"], table["b node"], strict=True))
    assert drawn == pairs | {(b, a) for a, b in pairs}
    rows = throughputs(one.plan)
    bars = spec(throughput_bars(rows, theme))
    assert [row["shown"] for row in rows_of(bars)] == rows["shown"].tolist()
    bound = one.plan.upper_bound if math.isfinite(one.plan.upper_bound) else None
    trail = spec(trail_chart(trail_table(one.plan), bound, theme))
    assert len(trail["layer"]) == (2 if bound is None else 3)


def test_ways_are_those_of_most_bytes_by_names_of_hosts() -> None:
    table = routes_table(stored(), 10)
    assert table.to_numpy().tolist() == [[0, 1, 30.0, 1, "n0 =n1"], [1, 2, 10.0, 2, "=n1 n0 n3"]]
    assert routes_table(stored(), 1)["route"].tolist() == ["n0 =n1"]
    of_nodes = circuit_routes(of_nodes=True, one=[3], other=[2], bytes=[5.0], first=[0, 1], circuit=[2])
    (row,) = routes_table(stored(routes=of_nodes), 10).to_numpy().tolist()
    assert row == ["n3", "n2", 5.0, 1, "n3 n2"]
    assert not len(routes_table(stored(routes=None), 10))
