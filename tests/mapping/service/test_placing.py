"""Placement requests: the case that they name, what is saved, and errors of the request."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mapping.placement.search.options import SearchOptions
from mapping.service.placing import evaluate, pareto, place, resolve, subject_of
from mapping.service.request import PlacementRequest
from registry.errors import DatabaseError, InvalidValue, UnknownName
from registry.model import HostOrder, Job
from registry.model.intake import Intake
from registry.registry import Registry
from tests.support.running_jobs import T0

OPTIONS = SearchOptions(steps=200, workers=1)


def test_a_case_has_the_hosts_of_the_job_and_the_ids_of_all_data(running: Registry) -> None:
    case = resolve(running, PlacementRequest(profile="across", job="1", options=OPTIONS, slots=2))
    assert [case.fabric.names[host] for host in case.allocation.hosts] == ["a0", "b0", "a1", "b1"]
    assert case.allocation.slots.tolist() == [2, 2, 2, 2]
    assert (case.cluster, case.job, case.present, case.present_name) == ("c", "1", None, "")
    assert case.profile_id == running.profiles.read("across").id
    assert case.snapshot == running.fabrics.read("c").id
    assert case.costs.background is None


def test_a_case_has_given_hosts_or_those_of_the_present_placement(running: Registry) -> None:
    hosts = PlacementRequest(profile="one-way", cluster="c", hosts=("b1", "a0"))
    assert resolve(running, hosts).allocation.slots.tolist() == [1, 1]
    order = HostOrder(hosts=("b0", "b0"), name="order.txt")
    case = resolve(running, PlacementRequest(profile="one-way", cluster="c", keep=order))
    assert (case.present_name, case.allocation.slots.tolist()) == ("order.txt", [2])
    assert (
        evaluate(running, PlacementRequest(profile="one-way", cluster="c", keep=order)).record_id
        == "order.txt"
    )


def test_stored_objects_and_iso_text_name_the_same_case(running: Registry) -> None:
    named = PlacementRequest(profile="across", job="1", options=OPTIONS)
    at = running.fabrics.read("c").observed_at.isoformat()
    stored = replace(named, profile=running.profiles.read("across"), job=running.jobs.read("1"), at=at)
    one, other = place(running, named), place(running, stored)
    assert (other.record_id, other.case.snapshot) == (one.record_id, one.case.snapshot)
    kept = running.placements.read(one.record_id)
    assert evaluate(running, replace(stored, keep=kept)).record_id == one.record_id
    with pytest.raises(InvalidValue, match="time: 'noon' is no time"):
        place(running, replace(named, at="noon"))


def test_a_database_that_refuses_to_save_does_not_cost_the_placement(
    running: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(record: object) -> str:
        raise DatabaseError("the database is in read-only mode")

    monkeypatch.setattr(running.placements, "save", refuse)
    request = PlacementRequest(profile="across", job="1", options=OPTIONS)
    report = place(running, request)
    assert report.evaluation.congestion_seconds == 8.0
    assert (report.record_id, report.unsaved) == ("", "the database is in read-only mode")
    assert all(one.unsaved and not one.record_id for one in pareto(running, request))


def test_a_placement_is_saved_and_may_be_kept_or_be_the_background_of_others(running: Registry) -> None:
    report = place(running, PlacementRequest(profile="across", job="1", options=OPTIONS))
    assert report.evaluation.congestion_seconds == 8.0  # pairs under one switch
    stored = running.placements.read(report.record_id)
    assert (stored.job, stored.placement.host_of_rank.tolist()) == (
        "1",
        report.placement.host_of_rank.tolist(),
    )
    kept = resolve(running, PlacementRequest(profile="across", job="1", keep=report.record_id))
    assert kept.present_name == report.record_id
    beside = PlacementRequest(
        profile="one-way", cluster="c", hosts=("a0", "a1"), background=((report.record_id, None),)
    )
    added = resolve(running, beside).costs.background
    assert added is not None
    assert added.load.tolist() == report.evaluation.link_bytes.tolist()
    reduced = resolve(running, replace(beside, background=((report.record_id, 2.0),))).costs.background
    assert reduced is not None
    assert reduced.load.tolist() == (report.evaluation.link_bytes / 2.0).tolist()
    with pytest.raises(InvalidValue, match="for all of the other jobs, or for none"):
        resolve(running, replace(beside, background=((report.record_id, 2.0), (report.record_id, None))))


def test_a_set_of_placements_is_saved(running: Registry) -> None:
    found = pareto(running, PlacementRequest(profile="across", job="1", options=OPTIONS))
    assert all(running.placements.read(one.record_id).placement.objective == "pareto" for one in found)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"cluster": None}, "a job, or a cluster with hosts, is needed"),
        ({"hosts": None}, "a job, or a cluster with hosts, is needed"),
        ({"job": "7"}, "job '7' has no hosts: it is PENDING"),
    ],
)
def test_a_request_without_hosts_is_an_error(running: Registry, wrong: dict[str, Any], says: str) -> None:
    running.save(
        Intake(
            cluster="c",
            jobs=(Job(id="7", state="PENDING", hosts=(), slots=(), source="test"),),
            source="test",
        )
    )
    request = PlacementRequest(profile="one-way", cluster="c", hosts=("a0", "b0"))
    with pytest.raises(InvalidValue, match=says):
        resolve(running, replace(request, **wrong))


def test_evaluating_needs_a_present_placement(running: Registry) -> None:
    with pytest.raises(InvalidValue, match="a placement to evaluate is needed"):
        evaluate(running, PlacementRequest(profile="across", job="1"))
    assert subject_of(running, "c").plan is None
    with pytest.raises(UnknownName):
        subject_of(running, "c", T0 - timedelta(days=1))
