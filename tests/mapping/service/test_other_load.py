"""The load of other jobs on the links of a measured run: their rates, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from mapping.placement.search.options import SearchOptions
from mapping.service.other_load import other_load
from mapping.service.placing import place
from mapping.service.request import PlacementRequest
from registry.model.intake import Intake
from registry.model.measured_run import MeasuredRun
from registry.registry import Registry
from tests.support.running_jobs import ACROSS, FABRIC, ONE_WAY, T0, job

HOSTS = ("a0", "b0", "a1", "b1")


def run(registry: Registry, minutes: float, profile: str | None = "across") -> MeasuredRun:
    """Return a run of job 1, ranks in order, whose middle is so many minutes after `T0`."""
    middle: datetime = T0 + timedelta(minutes=minutes)
    return MeasuredRun(
        cluster="c",
        application="halo",
        program="x",
        ranks=4,
        hosts=HOSTS,
        slots=(1, 1, 1, 1),
        launcher="l",
        profile=None if profile is None else registry.profiles.read(profile).id,
        job="1",
        started_at=middle - timedelta(seconds=30),
        wall_seconds=60.0,
    )


def test_rates_of_other_jobs_add_up_on_the_links_of_a_run(running: Registry) -> None:
    """Jobs 2 and 4, which ends after an hour, send 4 bytes in 8 s over the uplink of 1 byte/s."""
    assert other_load(running, run(running, 120)) == pytest.approx(0.5)
    assert other_load(running, run(running, 30)) == pytest.approx(1.0)
    of_nobody = replace(run(running, 120), job=None)
    assert other_load(running, of_nobody) == pytest.approx(0.5 + 16 / 64)


def test_only_links_of_the_run_count(running: Registry) -> None:
    """From a1 to a0 nobody else sends: jobs 2 and 4 send from a0."""
    own = replace(run(running, 120, "one-way"), ranks=2, hosts=("a1", "a0"), slots=(1, 1))
    assert other_load(running, own) == 0.0


def test_a_placed_run_counts_the_links_of_its_placement(running: Registry) -> None:
    request = PlacementRequest(profile="across", cluster="c", hosts=HOSTS, options=SearchOptions(seconds=0.2))
    found = place(running, request)
    assert found.evaluation.congestion_seconds == 8.0  # both pairs stay on their leaf switch
    assert other_load(running, replace(run(running, 120), placement=found.record_id)) == pytest.approx(
        0.5 / 1.0
    )


def test_what_is_unknown_is_none_and_nothing_else_is_zero(registry: Registry) -> None:
    registry.save(
        Intake(cluster="c", fabric=FABRIC, observed_at=T0, profiles=(ACROSS, ONE_WAY), source="test")
    )
    assert other_load(registry, run(registry, 5)) == 0.0
    registry.save(
        Intake(cluster="c", observed_at=T0, jobs=(job("1", HOSTS), job("3", ("a1",))), source="test")
    )
    assert other_load(registry, run(registry, 5)) is None
    registry.jobs.attach("3", "one-way")
    assert other_load(registry, run(registry, 5)) is None
    registry.save(Intake(cluster="c", observed_at=T0, jobs=(job("2", ("a0", "b1")),), source="test"))
    registry.jobs.attach("2", "one-way", iteration_seconds=16.0)
    assert other_load(registry, run(registry, 5)) == pytest.approx(0.25)
    assert other_load(registry, run(registry, 5, None)) is None
