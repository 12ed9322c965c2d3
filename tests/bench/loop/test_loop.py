"""The fabric of namespaces, the programs' traffic and estimates on it, and small runs, also simulated."""

from __future__ import annotations

import os
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from bench.loop.__main__ import Order, main, orders_of, summary, switch_bytes
from bench.loop.network import Plan, Refused, built, counted, existing
from bench.loop.programs import PROGRAMS, Output, Program, Runner, SimulatedRunner, platform
from mapping import evaluate
from mapping.placement.methods.baselines import in_order
from registry.model import Allocation

PLAN, SMALL = Plan(leaves=4, per_leaf=4, bits=8_000_000), Plan(leaves=2, per_leaf=2, bits=8_000_000)
"""A byte takes a microsecond on each cable."""
ALL_TO_ALL = Program(name="all-to-all", parts=4, bytes=1000)


@pytest.fixture
def small(processes: None) -> Plan:
    plan = Plan(leaves=2, per_leaf=2, bits=50_000_000, prefix=f"loop-test{os.getpid()}-")
    try:
        with built(plan):
            return plan
    except Refused as reason:
        pytest.skip(str(reason))


def test_both_directions_of_each_cable_are_limited_once() -> None:
    fabric, cables = PLAN.fabric(), PLAN.cables()
    assert (len(fabric.hosts), len(fabric.switches), fabric.cable_count) == (16, 5, 20)
    assert len({(one.namespace, one.device) for one in cables}) == len(cables) == 40
    commands = list(PLAN.commands())
    limited = [command for command in commands if command[0] == "tc"]
    ends = sorted((PLAN.prefix + one.namespace, one.device) for one in cables)
    assert sorted((command[2], command[6]) for command in limited) == ends
    below = {one.source for one in cables if one.target == "leaf2"}
    assert below == {"h05", "h06", "h07", "h08", "spine"}


def test_all_commands_stay_inside_the_namespaces() -> None:
    for command in PLAN.commands():
        inside = command[:3] == ["ip", "netns", "add"] or command[1] == "-n"
        name = command[3] if command[1] == "netns" else command[2]
        assert inside, command
        assert name in PLAN.namespaces, command
        if "peer" in command and "netns" in command:
            assert command[-1] in PLAN.namespaces, command
    assert all(len(one.device) < 16 for one in PLAN.cables())


@pytest.mark.parametrize(
    ("program", "in_order_bytes", "best_bytes", "total"),
    [
        # A row of the grid on each leaf: a middle one sends 4 messages up and 4 down. With 2 x 2 ranks on
        # each leaf, 4 messages leave it; a rank in the middle sends 4, too.
        (Program(name="halo", parts=4, bytes=1000), 8000, 4000, 48_000),
        # A member of each group on each leaf: each sends 3 messages away. With a group on each leaf, none.
        (ALL_TO_ALL, 12_000, 3000, 48_000),
    ],
    ids=["halo", "all-to-all"],
)
def test_estimates_are_those_by_hand(
    program: Program, in_order_bytes: int, best_bytes: int, total: int
) -> None:
    fabric, profile = PLAN.fabric(), program.profile(16)
    assert profile.bytes.sum() == total
    first, placed, *_ = orders_of(fabric, profile, [])
    assert first.estimate.congestion_seconds == pytest.approx(in_order_bytes * 1e-6)
    assert placed.estimate.congestion_seconds == pytest.approx(best_bytes * 1e-6)
    sent = switch_bytes(fabric, first.estimate)
    assert len(sent) == 16 + 8
    assert sent["leaf2", "spine"] == in_order_bytes
    assert sum(load for (_, target), load in sent.items() if target.startswith("h")) == total


def test_output_is_read_by_rank() -> None:
    text = "rank 1 host h02\nrank 0 host h05\nstep 1 0.250000\nstep 2 0.500000\n"
    assert Output.of(text) == Output(("h05", "h02"), (0.25, 0.5))
    for broken in ("rank 0 host h01\n", "rank 1 host h02\nstep 1 0.250000\n"):
        with pytest.raises(ValueError, match="the program printed"):
            Output.of(broken)


def measured(orders: list[Order], *runs: list[float]) -> list[Order]:
    """Add the median seconds of the runs of each order."""
    for order, medians in zip(orders, runs, strict=True):
        order.medians += medians
        order.counted += [1.0] * len(medians)
    return orders


def test_the_summary_states_what_was_faster_than_the_placement() -> None:
    orders = orders_of(PLAN.fabric(), ALL_TO_ALL.profile(16), [0, 1])
    found = summary(measured(orders, [4.0, 5.0, 9.0], [2.0], [1.0], [3.0]))
    assert found["faster_than_placed"] == ["random, seed 0"]
    assert found["placed_over_in_order"] == pytest.approx({"congestion_seconds": 0.25, "median_seconds": 0.4})
    assert found["placed_over_random"]["median_seconds"] == 1.0
    assert found["orders"]["in order"]["max_seconds"] == 9.0


def test_estimates_that_differ_by_bytes_of_barriers_share_a_rank() -> None:
    profile = ALL_TO_ALL.profile(16)
    first, placed, *_ = orders_of(PLAN.fabric(), profile, [])
    nearly = evaluate(Plan(bits=8_000_010).fabric(), profile, first.placement)
    orders = [first, placed, Order("random, seed 0", first.placement, nearly)]
    # Ranks 2.5, 1, 2.5 and 2, 1, 3: covariance 1.5, variances 1.5 and 2.
    found = summary(measured(orders, [3.0], [1.0], [4.0]))["spearman_with_median_seconds"]
    assert found["congestion_seconds"] == round(1.5 / np.sqrt(1.5 * 2), 3)


def test_a_program_runs_where_it_is_placed_and_the_cables_count_what_is_estimated(
    small: Plan, tmp_path: Path
) -> None:
    fabric, program = small.fabric(), Program(name="all-to-all", parts=2, bytes=1 << 18)
    profile = program.profile(4)
    first = in_order(4, Allocation.of(fabric, fabric.hosts.tolist()[::-1]))
    runner = Runner(small, tmp_path)
    with built(small):
        runner.compile()
        recorded = runner.record(program, first, fabric, 2)
        before, _ = counted(small)
        output = runner.run(program, first, fabric, 2)
        after, dropped = counted(small)
        with pytest.raises(Refused, match="exists: another run"), built(small):
            pass
    assert existing(small) == []
    assert output.hosts == ("h04", "h03", "h02", "h01")
    assert (len(output.seconds), dropped) == (2, 0)
    assert recorded.bytes.sum() == pytest.approx(profile.bytes.sum(), rel=0.01)
    estimate = evaluate(fabric, profile, first)
    # Two messages of 256 KiB leave each leaf; headers of packets add a few percent.
    assert estimate.congestion_seconds == pytest.approx((1 << 19) / 6.25e6)
    assert min(output.seconds) > estimate.congestion_seconds
    for ends, load in switch_bytes(fabric, estimate).items():
        assert after[ends] - before[ends] == pytest.approx(3 * load, rel=0.2), ends


def test_nothing_is_left_after_an_error(small: Plan) -> None:
    def interrupted() -> None:
        with built(small):
            assert sorted(existing(small)) == sorted(small.namespaces)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert existing(small) == []


def test_each_pair_of_simulated_hosts_has_the_route_over_its_leaves() -> None:
    zone = ET.fromstring("".join(platform(SMALL)))[0]
    names = {f"{one.source}-{one.target}" for one in SMALL.cables()}
    assert {one.get("id") for one in zone.iter("link")} == names
    found = zone.iter("route")
    routes = {(one.get("src"), one.get("dst")): [step.get("id") for step in one] for one in found}
    assert len(routes) == 4 * 3
    assert routes["h01", "h02"] == ["h01-leaf1", "leaf1-h02"]
    assert routes["h04", "h01"] == ["h04-leaf2", "leaf2-spine", "spine-leaf1", "leaf1-h01"]


@pytest.mark.skipif(
    os.environ.get("CI") != "true" and not all(map(shutil.which, PROGRAMS)),
    reason="no SimGrid: apt-get install libsimgrid-dev",
)
def test_a_simulated_step_takes_as_long_as_its_bytes_on_the_busiest_cable(
    processes: None, tmp_path: Path
) -> None:
    runner, fabric = SimulatedRunner(SMALL, tmp_path), SMALL.fabric()
    runner.compile()
    placement = in_order(4, Allocation.of(fabric, fabric.hosts.tolist()))
    across = Program(name="all-to-all", parts=2, bytes=200_000)  # two messages on each cable of the spine
    output = runner.run(across, placement, fabric, 2)
    assert output.hosts == SMALL.hosts
    assert output.seconds == pytest.approx([0.4 * 1.12, 0.4 * 1.12], rel=0.02)  # 1.12: headers of TCP


def test_a_machine_without_a_program_is_refused_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused, match="ip is not installed"), built(PLAN):
        pass
    with pytest.raises(Refused, match="smpicc is not installed"):
        SimulatedRunner(PLAN, tmp_path).compile()
    main(["--trial"])
    printed = capsys.readouterr().err
    assert "not measured: ip is not installed; simulated with SimGrid's SMPI" in printed
    assert "skipped: smpicc is not installed" in printed
