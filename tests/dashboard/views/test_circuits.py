"""The circuits page: plans of optical switches, filled, empty, and as one user sees it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import streamlit as st

from dashboard.queries.circuits import visible_plans
from dashboard.state.viewer import Access, Viewer
from registry.model import Job, Profile
from registry.model.intake import Intake
from tests.dashboard.conftest import MARKUP, Connect
from tests.registry.model.test_circuit_plan import circuit_plan, optical_switch, reconfiguration_record
from tests.support.apps import CIRCUITS, address, captions, messages, page, seen_by, titles, whole
from tests.support.fat_tree import at, fat_tree

TAB = {"tab": "circuits"}
HOSTS = ("node00", "node01", "node02", "node03")


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A registry with a plan for ann's jobs, and then one for a profile."""

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
        both = registry.circuit_plans.save(
            reconfiguration_record(
                cluster="toy",
                hosts=HOSTS,
                profiles=(name, name),
                ranks=(3, 3),
                jobs=("11", "12"),
                plan=circuit_plan(node_of_vertex=[0, 1, 3, 2, 2, 1]),
            )
        )
        alone = registry.circuit_plans.save(
            reconfiguration_record(profiles=(name,), plan=circuit_plan(gain=1.0, complete=False))
        )
    return Planned(connect=nothing, jobs=both, alone=alone)


def test_a_plan_is_shown_with_all_that_it_is_for(planned: Planned) -> None:
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


def test_a_plan_of_a_cluster_is_shown_by_its_hosts(planned: Planned) -> None:
    app = page(planned.connect, CIRCUITS)
    assert app.dataframe[0].value.to_numpy().tolist() == [
        ["remove", "node01", "node02"],
        ["add", "node00", "node03"],
    ]
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


def test_what_is_chosen_is_in_the_address_and_a_cluster_without_plans_leads_to_another(
    planned: Planned,
) -> None:
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
def test_an_unknown_name_is_reported_and_the_default_can_be_clicked(
    planned: Planned, wrong: dict[str, str]
) -> None:
    app = page(planned.connect, CIRCUITS, **wrong)
    assert "There is no" in messages(app)
    assert "Circuits to move" not in whole(app)
    (name,) = wrong
    app.button(key=f"forget {name}").click().run()
    assert not app.exception
    assert not app.error
    assert address(app) == TAB


def test_one_user_sees_the_plans_of_their_own_jobs_only(planned: Planned) -> None:
    with planned.connect() as registry:
        assert {one.id for one in visible_plans(registry, Viewer())} == {planned.jobs, planned.alone}
        assert [one.id for one in visible_plans(registry, Viewer(only="ann"))] == [planned.jobs]
        assert list(visible_plans(registry, Viewer(only="eve"))) == []
    app = seen_by(Access(only="eve"), planned.connect, CIRCUITS, plan=planned.jobs)
    assert planned.jobs not in whole(app)
    assert not app.dataframe
