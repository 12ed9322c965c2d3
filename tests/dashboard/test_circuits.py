"""Circuits: tables and figures, functions of a plan; the page, filled, empty, and as one user sees it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

import pytest
import streamlit as st

from dashboard.pages import circuits as tables
from dashboard.pages.circuits import (
    INSERTED,
    PRESENT,
    PROPOSED,
    REMOVED,
    UNCHANGED,
    UPPER_BOUND,
    circuit_matrix,
    throughput_bars,
    trail_chart,
)
from dashboard.shared.cards import DARK, LIGHT, csv_text
from dashboard.shared.door import visible_plans
from dashboard.shared.viewer import Access, Viewer
from registry.model import Job, Profile
from registry.model.intake import Intake
from registry.store.circuit_plans import CircuitPlanInfo, StoredCircuitPlan
from tests.dashboard.conftest import MARKUP, Connect
from tests.dashboard.test_pages_charts import rows_of, spec
from tests.registry.model import test_circuit_plan
from tests.registry.model.test_circuit_plan import circuit_plan, optical_switch, reconfiguration_record
from tests.support.apps import CIRCUITS, address, captions, messages, page, seen_by, titles, whole
from tests.support.fat_tree import at, fat_tree

ENDLESS = ("throughput", "compute_throughput", "communication_throughput")
AT = datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC)
UNKNOWN: dict[str, Any] = dict.fromkeys(("present_throughput", "gain", "break_even_seconds"), math.nan)
UNKNOWN |= {"present_source": [], "present_target": []}
UNLIMITED: dict[str, Any] = dict.fromkeys((*ENDLESS, "upper_bound"), math.inf)
UNLIMITED |= {"trail_throughput": [math.inf] * 3, "link_load": [0.0] * 3}


def stored(**changed: Any) -> StoredCircuitPlan:
    record = reconfiguration_record(hosts=("n0", "=n1", "n2", "n3"), plan=circuit_plan(**changed))
    told = {name: getattr(record, name) for name in record.__slots__}
    return StoredCircuitPlan(**told, id="r1", recorded_at=AT)


def info(**changed: Any) -> CircuitPlanInfo:
    record, plan = reconfiguration_record(), circuit_plan()
    found: dict[str, Any] = {field.name: getattr(plan, field.name, None) for field in fields(CircuitPlanInfo)}
    found |= {name: getattr(record, name) for name in ("wall_seconds", "code_version", "parameters")}
    found |= {"id": "r1", "recorded_at": AT, "cluster": "toy", "profiles": ("f", "f"), "jobs": ("1", "2")}
    found |= {"profile_names": ("run",), "applications": ("cg",), "circuits": 3, "removed": 1, "inserted": 1}
    return CircuitPlanInfo(**(found | changed))


def test_a_plan_is_a_row_or_a_text_and_what_is_unknown_is_empty() -> None:
    rows = tables.plans_table(
        [info(), info(id="r2", cluster=None, jobs=(), gain=None, removed=None, applied_at=AT)]
    )
    assert rows["plan"].tolist() == ["r1", "r2"]
    assert rows["cluster"].tolist() == ["toy", ""]
    assert rows["for"].tolist() == ["2 running jobs: run", "run"]
    assert rows["gain (times)"].tolist()[0] == 2.0
    assert rows[["gain (times)", "removed"]].iloc[1].isna().all()
    assert str(rows["saved at (UTC)"].iloc[0]) == "2026-01-02 03:04:05"
    assert rows["applied at (UTC)"].isna().tolist() == [True, False]
    assert len(tables.plans_table([])) == 0
    assert tables.option_text(info()) == "toy · 2 running jobs: run · 2 × · 2026-01-02 03:04:05 UTC · r1"
    assert tables.about(info(jobs=("1",))) == "1 running job: run"


def test_circuits_are_listed_by_hosts_with_their_change() -> None:
    table = tables.circuits_table(stored())
    rows = table[["a", "b", "what", "bytes"]].to_numpy().tolist()
    assert rows == [
        ["n0", "=n1", UNCHANGED, 40.0],
        ["n0", "n3", INSERTED, 10.0],
        ["=n1", "n2", REMOVED, 0.0],
        ["n2", "n3", UNCHANGED, 0.0],
    ]
    assert table["busy"].tolist() == pytest.approx([0.4, 0.1, 0.0, 0.0])
    assert "'=n1" in csv_text(table)


def test_circuits_to_remove_come_first_and_without_known_ones_all_are_added() -> None:
    assert set(tables.circuits_table(stored(**UNKNOWN))["what"]) == {INSERTED}
    assert tables.moves_table(stored(**UNKNOWN))["what"].tolist() == [INSERTED] * 3
    told = tables.facts(stored(**UNKNOWN))
    assert (told["Gain"], told["Moves"], told["Pays after"]) == ("not known", "3", "not known")
    moves = tables.moves_table(stored()).to_numpy().tolist()
    assert moves == [[REMOVED, "=n1", "n2"], [INSERTED, "n0", "n3"]]
    assert tables.facts(stored()) == {"Profiles/s": "1", "Gain": "2 ×", "Moves": "2", "Pays after": "6 s"}
    assert tables.facts(stored(gain=1.0, break_even_seconds=math.inf))["Pays after"] == "never"


def test_throughput_is_compared_as_far_as_it_is_known_and_the_trail_has_the_best_until_then() -> None:
    rows = tables.throughputs(circuit_plan())
    assert rows.set_index("series")["value"].to_dict() == {PRESENT: 0.5, PROPOSED: 1.0, UPPER_BOUND: 1.25}
    assert tables.throughputs(circuit_plan(**UNKNOWN))["series"].tolist() == [PROPOSED, UPPER_BOUND]
    assert len(tables.throughputs(circuit_plan(**UNKNOWN, **UNLIMITED))) == 0
    rows = tables.trail_table(circuit_plan())
    assert rows["iteration"].tolist() == [0, 1, 2]
    assert rows["best"].tolist() == [0.5, 1.0, 1.0]
    assert rows["bottleneck"].tolist() == ["communication", "compute", "communication"]
    assert tables.trail_table(circuit_plan(**UNLIMITED))["throughput"].isna().all()


@pytest.mark.parametrize(
    ("changed", "theme"),
    [({}, LIGHT), (UNKNOWN, DARK), (UNLIMITED, LIGHT)],
    ids=["known", "unknown", "without limit"],
)
def test_figures_draw_what_the_tables_hold(changed: dict[str, Any], theme: str) -> None:
    one = stored(**changed)
    table = tables.circuits_table(one)
    matrix = spec(circuit_matrix(table, 4, theme))
    drawn = {(row["across"], row["down"]) for row in rows_of(matrix)}
    pairs = set(zip(table["a node"], table["b node"], strict=True))
    assert drawn == pairs | {(b, a) for a, b in pairs}
    rows = tables.throughputs(one.plan)
    bars = spec(throughput_bars(rows, theme))
    assert [row["shown"] for row in rows_of(bars)] == rows["shown"].tolist()
    bound = one.plan.upper_bound if math.isfinite(one.plan.upper_bound) else None
    trail = spec(trail_chart(tables.trail_table(one.plan), bound, theme))
    assert len(trail["layer"]) == (2 if bound is None else 3)


def test_ways_are_those_of_most_bytes_by_names_of_hosts() -> None:
    table = tables.routes_table(stored(), 10)
    assert table.to_numpy().tolist() == [[0, 1, 30.0, 1, "n0 =n1"], [1, 2, 10.0, 2, "=n1 n0 n3"]]
    assert tables.routes_table(stored(), 1)["route"].tolist() == ["n0 =n1"]
    of_nodes = test_circuit_plan.circuit_routes(
        of_nodes=True, one=[3], other=[2], bytes=[5.0], first=[0, 1], circuit=[2]
    )
    (row,) = tables.routes_table(stored(routes=of_nodes), 10).to_numpy().tolist()
    assert row == ["n3", "n2", 5.0, 1, "n3 n2"]
    assert not len(tables.routes_table(stored(routes=None), 10))


TAB = {"tab": "circuits"}
HOSTS = ("node00", "node01", "node02", "node03")


@dataclass(frozen=True, kw_only=True)
class Planned:
    connect: Connect
    jobs: str
    alone: str


@pytest.fixture
def planned(nothing: Connect) -> Planned:
    profile = Profile.from_edges([0, 1], [1, 2], [30.0, 10.0], ranks=3, name=MARKUP, application="cg")
    jobs = tuple(
        Job(id=job, user="ann", hosts=HOSTS, slots=(1, 1, 1, 1), state="RUNNING") for job in ("11", "12")
    )
    with nothing() as registry:
        registry.save(
            Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), profiles=(profile,), jobs=jobs)
        )
        registry.optical.save(optical_switch())
        name = registry.profiles.list()[0].id
        two: dict[str, Any] = {"profiles": (name, name), "ranks": (3, 3), "jobs": ("11", "12")}
        two |= {"hosts": HOSTS, "plan": circuit_plan(node_of_vertex=[0, 1, 3, 2, 2, 1])}
        both = registry.circuit_plans.save(reconfiguration_record(cluster="toy", **two))
        cut = circuit_plan(gain=1.0, complete=False)
        alone = registry.circuit_plans.save(reconfiguration_record(profiles=(name,), plan=cut))
    return Planned(connect=nothing, jobs=both, alone=alone)


def test_a_plan_is_shown_with_all_that_it_is_for_and_by_hosts_if_it_is_of_a_cluster(planned: Planned) -> None:
    app = page(planned.connect, CIRCUITS, plan=planned.alone)
    assert titles(app) == ["Circuits to move", "Search", "Routes", "Plans"]
    assert planned.alone in whole(app)
    assert "was interrupted" in messages(app)
    assert len(app.get("vega_lite_chart")) == 3
    assert not app.error
    moves, circuits, ways, plans = (table.value for table in app.dataframe)
    assert moves.to_numpy().tolist() == [["remove", "1", "2"], ["add", "0", "3"]]
    assert len(circuits) == 4
    assert ways["route"].tolist() == ["0 1", "1 0 3"]
    assert list(plans["plan"]) == [planned.jobs, planned.alone]
    app = page(planned.connect, CIRCUITS)
    moves = app.dataframe[0].value
    assert moves.to_numpy().tolist() == [["remove", "node01", "node02"], ["add", "node00", "node03"]]
    assert list(app.dataframe[3].value["plan"]) == [planned.jobs, planned.alone]
    assert MARKUP not in captions(app)
    told = f"almanac cluster optical toy --applied {planned.jobs}"
    assert told in [code.value for code in app.code]
    with planned.connect() as registry:
        registry.circuit_plans.apply(planned.jobs)
    st.cache_resource.clear()
    app.run()
    assert "Applied to the switch" in "\n".join(one.value for one in app.success)
    assert told not in [code.value for code in app.code]


def test_choices_are_in_the_address_and_a_cluster_without_plans_leads_to_another(planned: Planned) -> None:
    with planned.connect() as registry:
        registry.save(Intake(cluster="other", observed_at=at(0), fabric=fat_tree()))
    app = page(planned.connect, CIRCUITS, plan=planned.jobs)
    assert address(app) == {**TAB, "plan": planned.jobs, "cluster": "toy"}
    assert app.dataframe[0].value["a"].tolist() == ["node01", "node00"]
    app.selectbox(key="choose plan").set_value(planned.alone).run()
    assert address(app) == {**TAB, "plan": planned.alone, "cluster": "toy"}
    app.selectbox(key="choose cluster").set_value("other").run()
    assert address(app) == {**TAB, "cluster": "other"}
    app = seen_by(Access(only="ann"), planned.connect, CIRCUITS)  # ann sees no plan without a cluster
    assert "Cluster other has no circuit plan" in messages(app)
    (link,) = app.get("page_link")
    assert link.proto.label == "Plans of toy"


@pytest.mark.parametrize("wrong", [{"cluster": "toys"}, {"plan": "r0"}])
def test_an_unknown_name_is_reported_and_can_be_forgotten(planned: Planned, wrong: dict[str, str]) -> None:
    app = page(planned.connect, CIRCUITS, **wrong)
    assert "There is no" in messages(app)
    assert "Circuits to move" not in whole(app)
    (name,) = wrong
    app.button(key=f"forget {name}").click().run()
    assert not [*app.exception, *app.error]
    assert address(app) == TAB


def test_one_user_sees_the_plans_of_their_own_jobs_only(planned: Planned) -> None:
    with planned.connect() as registry:
        assert {one.id for one in visible_plans(registry, Viewer())} == {planned.jobs, planned.alone}
        assert [one.id for one in visible_plans(registry, Viewer(only="ann"))] == [planned.jobs]
        assert list(visible_plans(registry, Viewer(only="eve"))) == []
    app = seen_by(Access(only="eve"), planned.connect, CIRCUITS, plan=planned.jobs)
    assert planned.jobs not in whole(app)
    assert not app.dataframe
