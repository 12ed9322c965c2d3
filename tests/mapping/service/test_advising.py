"""Advice for running jobs: searched beside the others, saved, and kept after an interrupt."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from mapping.placement.case import PlacementCase
from mapping.placement.search.options import SearchOptions
from mapping.placement.search.placing import find_placement
from mapping.service.advising import Advised, advise_all
from mapping.service.live import Live, Unloaded, traffic
from registry.errors import InvalidValue
from registry.model import Placement
from registry.model.measured_run import MeasuredRun
from registry.registry import Registry


def advised(registry: Registry, live: Live, **more: Any) -> list[Advised]:
    found = list(advise_all(registry, live, SearchOptions(**({"steps": 4000, "workers": 1} | more))))
    assert not [one for one in found if isinstance(one, Unloaded)]
    return [one for one in found if isinstance(one, Advised)]


def test_advice_weighs_each_job_against_the_others_and_saves_both_placements(running: Registry) -> None:
    live = traffic(running, "c")
    first, second = advised(running, live)
    assert (first.advice.job, first.advice.present_seconds, first.advice.proposed_seconds) == (
        "1",
        20.0,
        12.0,
    )
    assert first.advice.gain == pytest.approx(20 / 12)
    assert (first.advice.in_background, first.complete) == (1, True)
    assert (second.advice.job, second.advice.proposed, second.advice.gain) == ("2", None, 1.0)
    assert first.advice.proposed is not None
    present = running.placements.read(first.advice.present)
    proposed = running.placements.read(first.advice.proposed)
    assert (present.role, proposed.role) == ("present", "proposed")
    assert (present.job, proposed.job, present.profile) == ("1", "1", proposed.profile)
    assert present.evaluation is not None
    assert present.evaluation.background.startswith("added: ")
    assert first.advice.moved == (present.placement.host_of_rank != proposed.placement.host_of_rank).sum()
    stored = {one.job: one for one in running.advices.list("c")}
    assert stored["1"].gain == first.advice.gain
    assert stored["2"].proposed is None


def test_what_advice_saved_is_taken_the_next_time_and_nothing_is_saved_twice(running: Registry) -> None:
    before = traffic(running, "c")
    once = advised(running, before)
    live = traffic(running, "c")
    assert live.evaluated == ()
    np.testing.assert_allclose(live.shared.seconds, before.shared.seconds)
    assert {one.placement for one in live.shared.jobs} == {one.advice.present for one in once}
    history = len(running.placements.history("c"))
    again = advised(running, live)
    assert [one.advice.present for one in again] == [one.advice.present for one in once]
    assert len(running.placements.history("c")) == history
    by_job = {one.stored.job.id: one.advice for one in traffic(running, "c").running.jobs}
    assert by_job["1"] is not None
    assert by_job["1"].at == live.running.at


def test_a_placement_that_measured_worse_is_not_advised_again(running: Registry) -> None:
    first, _ = advised(running, traffic(running, "c"))
    assert first.advice.proposed is not None
    proposed = running.placements.read(first.advice.proposed)
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


def test_few_moves_are_kept_to(running: Registry) -> None:
    (first, _) = advised(running, traffic(running, "c"), moves=2)
    assert first.advice.moved <= 2
    assert first.advice.gain == pytest.approx(20 / 12)  # two ranks change places


def test_after_an_interrupt_what_is_done_stays_saved(
    running: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []

    def interrupted(*given: Any, **more: Any) -> Placement:
        calls.append(given)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return find_placement(*given, **more)

    monkeypatch.setattr("mapping.service.advising.find_placement", interrupted)
    found: list[Advised | Unloaded] = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(advise_all(running, traffic(running, "c"), SearchOptions(steps=500, workers=1)))
    assert [one.job for one in running.advices.list("c")] == ["1"]


def test_a_search_that_is_interrupted_saves_its_best_and_is_the_last(
    running: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mapping.service.advising.find_placement",
        lambda *given, **more: replace(find_placement(*given, **more), complete=False),
    )
    (only,) = advised(running, traffic(running, "c"), steps=500)
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
    first, second = advise_all(running, traffic(running, "c"), SearchOptions(steps=500, workers=1))
    assert isinstance(first, Unloaded)
    assert (first.job.stored.job.id, first.reason) == ("1", "test: cannot be searched")
    assert isinstance(second, Advised)
    assert [one.job for one in running.advices.list("c")] == ["2"]


def test_budgets_that_make_no_sense_are_refused_before_anything_is_done(running: Registry) -> None:
    with pytest.raises(InvalidValue, match="seconds"):
        next(advise_all(running, traffic(running, "c"), SearchOptions(seconds=-1.0)))
