"""What ``almanac demo`` saves and prints: a month with a regression, simulated runs, a plan of circuits."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from almanac.cli import main
from almanac.commands.cluster import EXIT_PROBLEMS
from almanac.commands.serve import NEXT
from almanac.demo import data as generated_data
from almanac.demo import data as history
from almanac.demo import demo as fill
from almanac.demo.demo import CLUSTER, JOB, OPTICAL, RUNNING
from mapping.checks.checks import check
from mapping.circuits.problem import Topology
from mapping.questions.circuits import machine_of
from mapping.questions.place import subject_of
from mapping.questions.today import read_today
from mapping.traffic.job_loads import regressions
from mapping.traffic.measured_gain import measured_gains
from registry.database.embedded_server import ServerAddress
from registry.registry import Registry
from tests.dashboard.conftest import Connect
from tests.support import paths, servers

KEPT = (
    *("Cluster", "Content", "Observation", "Routing", "Profile", "Job", "Placement", "LinkLoads", "Advice"),
    *("CounterSweep", "IntendedWiring", "Simulation", "Reconfiguration", "MeasuredRun"),
)
"""Labels of what a second run of the demo must not add to; that it ran is kept each time."""


@pytest.fixture(scope="module")
def registry(connect: Connect) -> Iterator[Registry]:
    with connect() as opened:
        yield opened


@pytest.fixture(scope="module")
def moment(registry: Registry) -> datetime:
    found = fill.stored_moment(registry)
    assert found is not None
    return found


def counted(registry: Registry) -> dict[str, int]:
    def nodes(label: str) -> int:
        rows = registry.database.read(lambda run: run.run(f"MATCH (n:{label}) RETURN count(n) AS nodes"))
        return int(rows[0]["nodes"])

    return {label: nodes(label) for label in KEPT}


def test_the_demo_replays_what_it_finds_beside_ranks_in_order_and_at_random(registry: Registry) -> None:
    placed = {info.id: info for info in registry.placements.history(CLUSTER, job=JOB)}
    runs = registry.simulations.list(CLUSTER)
    profile = registry.profiles.read(fill.PROFILE).profile
    in_order, random, found = runs[::-1]
    assert [placed[run.placement].strategy for run in (in_order, random)] == list(fill.BASELINES.values())
    assert {run.delivered_bytes for run in runs} == {profile.bytes.sum()}
    assert all(run.complete and run.parameters["rounds"] == fill.ROUNDS for run in runs)
    # what the static cost says holds in simulated time
    static = [placed[run.placement].congestion_seconds or math.nan for run in (found, in_order, random)]
    assert static[0] < static[1] < static[2]
    assert found.completion_seconds < in_order.completion_seconds < random.completion_seconds


def test_all_times_are_of_the_month_before_the_demonstration(registry: Registry, moment: datetime) -> None:
    seen = registry.fabrics.observations(CLUSTER)
    jobs = [stored.job for stored in registry.jobs.list(CLUSTER)]
    sweeps = registry.counters.recent(CLUSTER, timedelta(hours=2))
    assert moment <= datetime.now(UTC)
    times = [moment - one.at for one in seen]
    assert times == [history.MONTH, history.BEFORE_LOSS, history.LOST, history.MOVED]
    assert [one.source == generated_data.SOURCE for one in seen] == [True, True, True, False]
    begins = [time for job in jobs for time in (job.submitted_at, job.started_at, job.ended_at) if time]
    assert moment - history.MONTH < min(begins) < max(begins) < moment
    assert {job.id for job in jobs if job.ended_at is None} == set(RUNNING)
    assert {job.source for job in jobs} == {generated_data.SOURCE}
    assert sweeps is not None
    assert (moment - sweeps.start, sweeps.end) == (timedelta(hours=1), moment)


def test_the_last_nightly_job_is_the_only_regression_found(registry: Registry, moment: datetime) -> None:
    (found,) = regressions(registry.placements.series())
    placed = {info.id: info for info in registry.placements.history(CLUSTER)}
    lost = registry.fabrics.changes(CLUSTER, moment - history.BEFORE_LOSS, moment - history.LOST)
    good = placed[found.last_good]
    assert (found.cluster, found.job, found.role) == (CLUSTER, JOB, "present")
    assert found.changed == ("fabric", "routes")
    assert (good.job, good.recorded_at < moment - history.LOST) == (str(int(JOB) - min(history.NIGHTS)), True)
    assert [cable.cables for cable in lost.cables_vanished] == [1]
    assert len(lost.switches_rerouted) == 2
    assert found.ratio > found.limit > found.centre > 1.0


def test_the_slow_job_has_a_better_placement_and_measured_runs_that_are_named_as_made(
    registry: Registry,
) -> None:
    placed = {info.id: info for info in registry.placements.history(CLUSTER, job=JOB)}
    (advice,) = (one for one in registry.advices.list(CLUSTER) if one.job == JOB)
    present, proposed = placed[advice.present], placed[advice.proposed or ""]
    assert (present.role, proposed.role) == ("present", "proposed")
    assert present.strategy == fill.BASELINES[fill.IN_ORDER]
    assert present.congestion_seconds == advice.present_seconds
    assert proposed.congestion_seconds == advice.proposed_seconds
    assert advice.gain > 1.5
    assert 0 < advice.moved <= present.ranks
    runs = registry.measured_runs.list(CLUSTER)
    job = registry.jobs.read(JOB, CLUSTER).job
    found, few = sorted(measured_gains(runs), key=lambda one: -len(one.placed))
    assert {run.launcher for run in runs} == {generated_data.SOURCE}
    assert (len(runs), len(found.in_order), len(found.placed), len(few.placed)) == (10, 4, 4, 2)
    assert found.gain == pytest.approx(61.95 / 57.1)
    assert few.gain == pytest.approx(61.95 / 66.35)
    assert (found.estimated or 0.0) > 1.5
    assert not found.worse
    assert not few.worse
    assert job.started_at is not None
    assert job.ended_at is not None
    assert min(run.started_at for run in runs) == job.started_at
    assert max(run.started_at + timedelta(seconds=run.wall_seconds) for run in runs) < job.ended_at


def test_today_shows_the_moved_and_lost_cables_and_who_shares(registry: Registry, moment: datetime) -> None:
    today = read_today(registry, CLUSTER, moment - timedelta(days=1))
    planned = check(subject_of(registry, CLUSTER, moment - history.BEFORE_LOSS), ["wiring"])
    assert today.scanned
    assert today.changes is not None
    gone, come = today.changes.cables_vanished, today.changes.cables_appeared
    assert (len(gone), len(come)) == (2, 1)
    assert not planned
    groups = sorted(one.group for one in today.findings if one.check == "wiring")
    assert groups == ["missing", "wrong port"]
    (port,) = (one for one in today.findings if one.check == "link-errors")
    assert f"{history.MOVED_AT}:{history.PORT}" in port.text
    assert {load.iteration_from for load in today.live.shared.jobs} == {"measured"}
    assert not today.slowed  # links are busy to less than two thirds: an iteration waits little
    assert {one.job for one in today.advice} < set(RUNNING)
    assert not today.failed
    assert not today.sources


def test_all_jobs_are_on_an_optical_switch_within_its_limits_whose_saved_plan_gains(
    registry: Registry,
) -> None:
    switch = registry.optical.read(OPTICAL)
    fabric = registry.fabrics.read(OPTICAL).fabric
    jobs = [stored.job for stored in registry.jobs.list(OPTICAL)]
    assert switch.hosts == tuple(fabric.names[host] for host in fabric.hosts.tolist())
    assert len(switch.hosts) == math.prod(generated_data.OPTICAL_SIDES)
    topology = Topology.of(len(switch.hosts), switch.circuits)
    topology.require(machine_of(switch))
    assert (np.bincount(np.r_[topology.source, topology.target]) == generated_data.OPTICAL_DEGREE).all()
    assert {job.id for job in jobs} == set(fill.ON_CIRCUITS)
    assert sorted(host for job in jobs for host in job.hosts) == sorted(switch.hosts)
    assert {sum(job.slots) for job in jobs} == {64}
    (info,) = registry.circuit_plans.list(OPTICAL)
    plan = registry.circuit_plans.read(info.id).plan
    assert registry.optical.read(OPTICAL).circuits == plan.present
    assert set(info.jobs) == set(fill.ON_CIRCUITS)
    assert plan.complete
    assert 1.0 < plan.gain <= plan.upper_bound / plan.present_throughput * (1 + 1e-9)
    assert len(plan.removed) > 0 < len(plan.inserted)


README = " ".join((paths.ROOT / "README.md").read_text("utf-8").split())


def shown_in_the_readme(printed: str) -> Iterator[str]:
    """Yield what README.md says of the demo: sizes, rows of the table, simulated times, gain of circuits."""
    adapters, switches = re.findall(r"with (\d+) adapters, (\d+) switches", printed)[0]
    yield f"({adapters} adapters on {switches} switches)"
    plain = re.sub(r"[\u2500-\u257f|]", " ", printed).replace("\u00b5s", "us")
    for name in ("in order", "random, mean of 5", "found"):
        worst, network, hop_bytes, dilation = re.findall(
            rf"{name} +([\d.]+ us) +([\d.]+ us) +([\d.e+]+) +([\d.]+)", plain
        )[0]
        yield f"{name} {worst} {network} {hop_bytes} {dilation}"
    worst, network, hop_bytes = re.findall(r"lower bound +([\d.]+) us +([\d.]+) us +([\d.e+]+)", plain)[0]
    yield f"certified lower bound {float(worst):.1f} us {float(network):.1f} us {hop_bytes}"
    runs = {
        name: float(us) for name, us in re.findall(r"(in order|random|found) +([\d.]+) us +[\d.]+ MB", plain)
    }
    yield f"({runs['found']:.0f} us against {runs['in order']:.0f} and {runs['random']:.0f} us)"
    (gain,) = re.findall(r"([\d.]+) times the present throughput", printed)
    yield f"({float(gain):.2f} times the present throughput)"


def test_a_second_run_of_the_demo_shows_the_same_and_adds_nothing(
    demonstration: ServerAddress,
    registry: Registry,
    moment: datetime,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = counted(registry)
    (info,) = registry.circuit_plans.list(OPTICAL)
    runs = registry.simulations.list(CLUSTER)
    in_time = contextlib.nullcontext(lambda: None)  # kernels are not compiled by another process
    monkeypatch.setattr("almanac.precompile.precompiled_kernels", lambda progress: in_time)
    config = tmp_path / "config.toml"
    config.write_text("")
    monkeypatch.setenv("ALMANAC_CONFIG", str(config))
    for name, value in servers.variables(demonstration).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as stop:
        main(["demo", "-o", str(tmp_path / "ranks")])
    assert not stop.value.code
    assert counted(registry) == before
    assert fill.stored_moment(registry) == moment
    printed = " ".join(capsys.readouterr().out.split())
    for words in (
        f"{fill.PROFILE} on {CLUSTER}: profile sent in rounds; packets; routing: tables",
        *(*fill.BASELINES, "found", "certified lower bound"),
        f"removed ({info.removed}):",
        f"added ({info.inserted}):",
        "times the present throughput",
    ):
        assert words in printed
    for words in shown_in_the_readme(printed):
        assert words in README
    for arguments in NEXT:
        assert f"almanac {arguments} #" in printed
        if not arguments.startswith("advise"):  # it saves what it finds
            with pytest.raises(SystemExit) as stop:
                main(arguments.split())
            assert stop.value.code in (None, 0, EXIT_PROBLEMS)
            assert capsys.readouterr().out
    assert len(runs) == len(fill.BASELINES) + 1
    assert len((tmp_path / "ranks").read_text("utf-8").splitlines()) == 64
