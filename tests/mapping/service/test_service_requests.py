"""Requests and advice for jobs: the case that is named, what is placed, simulated and saved, and errors."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from mapping.cluster import open_cluster
from mapping.placement.case import PlacementCase
from mapping.placement.search.options import SearchOptions
from mapping.placement.search.placing import find_placement
from mapping.service import simulations
from mapping.service.advising import Advised, advise_all
from mapping.service.live import Live, Unloaded, traffic, with_running_jobs
from mapping.service.placing import evaluate, pareto, place, resolve, subject_of
from mapping.service.request import PlacementRequest
from mapping.service.simulations import SimulationOptions, SimulationRequest, simulation_case
from registry.errors import DatabaseError, InvalidValue, UnknownName
from registry.model import HostOrder, Job, Placement
from registry.model.intake import Intake
from registry.model.measured_run import MeasuredRun
from registry.registry import Registry
from tests.support.dask_cluster import DaskCluster
from tests.support.running_jobs import T0
from tests.support.sure import sure

OPTIONS = SearchOptions(steps=200, workers=1)


def test_a_case_has_the_hosts_of_the_job_or_given_ones_and_the_ids_of_all_data(running: Registry) -> None:
    case = resolve(running, PlacementRequest(profile="across", job="1", options=OPTIONS, slots=2))
    assert [case.fabric.names[host] for host in case.allocation.hosts] == ["a0", "b0", "a1", "b1"]
    assert case.allocation.slots.tolist() == [2, 2, 2, 2]
    assert (case.cluster, case.job, case.present, case.present_name) == ("c", "1", None, "")
    assert case.profile_id == running.profiles.read("across").id
    assert case.snapshot == running.fabrics.read("c").id
    assert case.costs.background is None
    hosts = PlacementRequest(profile="one-way", cluster="c", hosts=("b1", "a0"))
    assert resolve(running, hosts).allocation.slots.tolist() == [1, 1]
    kept = replace(hosts, hosts=None, keep=HostOrder(hosts=("b0", "b0"), name="order.txt"))
    case = resolve(running, kept)
    assert (case.present_name, case.allocation.slots.tolist()) == ("order.txt", [2])
    assert evaluate(running, kept).record_id == "order.txt"


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


def test_a_placement_that_cannot_be_saved_is_kept(running: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = DatabaseError("the database is in read-only mode")
    monkeypatch.setattr(running.placements, "save", MagicMock(side_effect=refused))
    request = PlacementRequest(profile="across", job="1", options=OPTIONS)
    report = place(running, request)
    assert report.evaluation.congestion_seconds == 8.0
    assert (report.record_id, report.unsaved) == ("", "the database is in read-only mode")
    assert all(one.unsaved and not one.record_id for one in pareto(running, request))


def test_a_placement_is_saved_and_may_be_kept_or_be_the_background_of_others(running: Registry) -> None:
    request = PlacementRequest(profile="across", job="1", options=OPTIONS)
    report = place(running, request)
    assert report.evaluation.congestion_seconds == 8.0  # pairs under one switch
    stored, saved = running.placements.read(report.record_id), report.record_id
    placed = report.placement.host_of_rank.tolist()
    assert (stored.job, stored.placement.host_of_rank.tolist()) == ("1", placed)
    assert resolve(running, replace(request, keep=saved)).present_name == saved
    for divisor in (None, 2.0):
        others = ((saved, divisor),)
        beside = PlacementRequest(profile="one-way", cluster="c", hosts=("a0", "a1"), background=others)
        added = sure(resolve(running, beside).costs.background)
        assert added.load.tolist() == (report.evaluation.link_bytes / (divisor or 1.0)).tolist()
    with pytest.raises(InvalidValue, match="for all of the other jobs, or for none"):
        resolve(running, replace(beside, background=((saved, 2.0), (saved, None))))


def test_a_request_without_hosts_or_a_present_placement_is_an_error(running: Registry) -> None:
    waiting = Job(id="7", state="PENDING", hosts=(), slots=(), source="test")
    running.save(Intake(cluster="c", jobs=(waiting,), source="test"))
    request = PlacementRequest(profile="one-way", cluster="c", hosts=("a0", "b0"))
    wrong: list[dict[str, Any]] = [{"cluster": None}, {"hosts": None}]
    for one in wrong:
        with pytest.raises(InvalidValue, match="a job, or a cluster with hosts, is needed"):
            resolve(running, replace(request, **one))
    with pytest.raises(InvalidValue, match="job '7' has no hosts: it is PENDING"):
        resolve(running, replace(request, job="7"))
    with pytest.raises(InvalidValue, match="a placement to evaluate is needed"):
        evaluate(running, request)
    assert subject_of(running, "c").plan is None
    with pytest.raises(UnknownName):
        subject_of(running, "c", T0 - timedelta(days=1))


def test_a_request_may_have_all_running_jobs_as_background(running: Registry) -> None:
    options = SearchOptions(steps=2000, workers=1)
    request = PlacementRequest(profile="across", job="1", cluster="c", options=options)
    request = with_running_jobs(running, request)
    background = sure(resolve(running, request).costs.background)
    assert (background.jobs, background.load.sum()) == (1, 4.0 * 3)
    assert place(running, request).evaluation.congestion_seconds == 12.0
    elsewhere = PlacementRequest(profile="across", cluster="c", hosts=("a0", "b0"), slots=2)
    assert sure(resolve(running, with_running_jobs(running, elsewhere)).costs.background).jobs == 2
    with pytest.raises(InvalidValue, match="name no other"):
        resolve(running, replace(request, background=(("p1", None),)))
    with pytest.raises(InvalidValue, match="cluster"):
        with_running_jobs(running, replace(request, cluster=None))


def test_each_placement_gets_a_run_and_files_are_not_saved(running: Registry) -> None:
    near, far = ("a0", "a1", "b0", "b1"), ("a0", "b0", "a1", "b1")
    placements = [HostOrder(hosts=hosts, name="".join(hosts)) for hosts in (near, far)]
    options = SimulationOptions(rounds=2)
    asked = SimulationRequest(profile="across", cluster="c", placements=placements, options=options)
    case = simulation_case(running, asked)
    assert [(one.name, one.saved) for one in case.placed] == [(one.name, False) for one in placements]
    report = simulations.simulate_placements(case, options, running)
    assert (report.complete, [run.id for run in report.runs]) == (True, [None, None])
    assert report.parameters["rounds"] == 2
    sums = [run.simulation.link_bytes.sum() for run in report.runs]
    assert sums == [4 * 8 * 2, 4 * 8 * 3]  # messages, bytes, links
    (busiest,) = report.busiest(report.runs[1], 1)
    assert busiest.link.bytes == 2 * 8
    assert busiest.link.source.name in {"A", "B"}


STEPS = SearchOptions(steps=4000, workers=1)
FEW = SearchOptions(steps=500, workers=1)


def advised(registry: Registry, live: Live, options: SearchOptions = STEPS) -> list[Advised]:
    found = list(advise_all(registry, live, options))
    assert not [one for one in found if isinstance(one, Unloaded)]
    return [one for one in found if isinstance(one, Advised)]


def test_advice_weighs_each_job_against_the_others_and_saves_both_placements_once(running: Registry) -> None:
    before = traffic(running, "c")
    once = first, second = advised(running, before)
    advice = first.advice
    assert (advice.job, advice.present_seconds, advice.proposed_seconds) == ("1", 20.0, 12.0)
    assert advice.gain == pytest.approx(20 / 12)
    assert (advice.in_background, first.complete) == (1, True)
    assert (second.advice.job, second.advice.proposed, second.advice.gain) == ("2", None, 1.0)
    present, proposed = map(running.placements.read, (advice.present, sure(advice.proposed)))
    assert (present.role, proposed.role) == ("present", "proposed")
    assert (present.job, proposed.job, present.profile) == ("1", "1", proposed.profile)
    assert sure(present.evaluation).background.startswith("added: ")
    assert advice.moved == (present.placement.host_of_rank != proposed.placement.host_of_rank).sum()
    stored = {one.job: one for one in running.advices.list("c")}
    assert (stored["1"].gain, stored["2"].proposed) == (advice.gain, None)

    live = traffic(running, "c")
    assert live.evaluated == ()  # what was saved is taken
    np.testing.assert_allclose(live.shared.seconds, before.shared.seconds)
    assert {one.placement for one in live.shared.jobs} == {one.advice.present for one in once}
    history = len(running.placements.history("c"))
    again = advised(running, live)
    assert [one.advice.present for one in again] == [one.advice.present for one in once]
    assert len(running.placements.history("c")) == history
    by_job = {one.stored.job.id: one.advice for one in traffic(running, "c").running.jobs}
    assert sure(by_job["1"]).at == live.running.at


def test_a_placement_that_measured_worse_is_not_advised_again(running: Registry) -> None:
    first, _ = advised(running, traffic(running, "c"))
    proposed = running.placements.read(sure(first.advice.proposed))
    allocation, names = proposed.placement.allocation, running.fabrics.read("c").fabric.names
    in_order = MeasuredRun(
        cluster="c",
        application=running.profiles.read(str(proposed.profile)).profile.application,
        program="x",
        ranks=proposed.placement.ranks,
        launcher="l",
        hosts=tuple(names[host] for host in allocation.hosts.tolist()),
        slots=tuple(allocation.slots.tolist()),
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        wall_seconds=1.0,
    )
    for seconds in (1.1, 1.2, 1.3):
        running.measured_runs.save(replace(in_order, wall_seconds=seconds, placement=proposed.id))
        running.measured_runs.save(replace(in_order, wall_seconds=seconds - 0.3))
    again, _ = advised(running, traffic(running, "c"))
    assert (again.advice.proposed, again.advice.gain, again.advice.moved) == (None, 1.0, 0)


def test_few_moves_are_kept_to_and_budgets_that_make_no_sense_are_refused(running: Registry) -> None:
    live = traffic(running, "c")
    with pytest.raises(InvalidValue, match="seconds"):
        next(advise_all(running, live, SearchOptions(seconds=-1.0)))
    (first, _) = advised(running, live, replace(STEPS, moves=2))
    assert first.advice.moved <= 2
    assert first.advice.gain == pytest.approx(20 / 12)  # two ranks change places


def test_an_interrupted_search_saves_its_best(running: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "mapping.service.advising.find_placement",
        lambda *given, **more: replace(find_placement(*given, **more), complete=False),
    )
    (only,) = advised(running, traffic(running, "c"), FEW)
    assert not only.complete
    assert [one.job for one in running.advices.list("c")] == ["1"]


def test_a_job_that_cannot_be_searched_is_reported_and_the_others_have_their_turn(
    running: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(case: PlacementCase, *given: Any) -> Placement:
        if case.profile.ranks == 4:
            raise InvalidValue("test", "cannot be searched")
        return find_placement(case, *given)

    monkeypatch.setattr("mapping.service.advising.find_placement", refused)
    first, second = advise_all(running, traffic(running, "c"), FEW)
    assert isinstance(first, Unloaded)
    assert (first.job.stored.job.id, first.reason) == ("1", "test: cannot be searched")
    assert isinstance(second, Advised)
    assert [one.job for one in running.advices.list("c")] == ["2"]


def test_advice_found_on_a_cluster_is_that_of_one_machine(running: Registry, dask: DaskCluster) -> None:
    live, progress = traffic(running, "c"), MagicMock()
    with open_cluster(dask.address) as cluster:
        found = list(advise_all(running, live, STEPS, progress, cluster))
    there = {one.advice.job: one for one in found if isinstance(one, Advised)}
    here = {one.advice.job: one for one in advise_all(running, live, STEPS) if isinstance(one, Advised)}
    assert set(there) == set(here) == {"1", "2"}
    for job, one in here.items():
        assert replace(there[job].advice, at=one.advice.at) == one.advice  # ids are of content
        assert there[job].complete
    assert progress.call_args.args[:2] == ("jobs", 2)
