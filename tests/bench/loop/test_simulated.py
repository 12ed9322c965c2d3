"""The simulated fabric: its routes are those of the built one, and a step takes as long as by hand."""

from __future__ import annotations

import os
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench.loop.__main__ import main
from bench.loop.network import Refused
from bench.loop.plan import Plan
from bench.loop.programs import Program
from bench.loop.simulated import PROGRAMS, SimulatedRunner, platform
from mapping.placement.strategies.baselines import in_order
from registry.model import Allocation

PLAN = Plan(leaves=2, per_leaf=2, bits=8_000_000)
"""A byte takes a microsecond on each cable."""


def test_each_pair_of_hosts_has_the_route_over_its_leaves() -> None:
    zone = ET.fromstring("".join(platform(PLAN)))[0]
    cables = {one.get("id") for one in zone.iter("link")}
    assert cables == {f"{one.source}-{one.target}" for one in PLAN.cables()}
    routes = {
        (one.get("src"), one.get("dst")): [step.get("id") for step in one] for one in zone.iter("route")
    }
    assert len(routes) == 4 * 3
    assert routes["h01", "h02"] == ["h01-leaf1", "leaf1-h02"]
    assert routes["h04", "h01"] == ["h04-leaf2", "leaf2-spine", "spine-leaf1", "leaf1-h01"]


@pytest.mark.skipif(
    os.environ.get("CI") != "true" and not all(map(shutil.which, PROGRAMS)),
    reason="no SimGrid: apt-get install libsimgrid-dev",
)
def test_a_step_takes_as_long_as_its_bytes_on_the_busiest_cable(tmp_path: Path) -> None:
    runner, fabric = SimulatedRunner(PLAN, tmp_path), PLAN.fabric()
    runner.compile()
    placement = in_order(4, Allocation.of(fabric, fabric.hosts.tolist()))
    across = Program(name="all-to-all", parts=2, bytes=200_000)  # two messages on each cable of the spine
    output = runner.run(across, placement, fabric, 2)
    assert output.hosts == PLAN.hosts
    assert output.seconds == pytest.approx([0.4 * 1.12, 0.4 * 1.12], rel=0.02)  # 1.12: headers of TCP


def test_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused, match="smpicc is not installed"):
        SimulatedRunner(PLAN, tmp_path).compile()
    main(["--trial"])
    told = capsys.readouterr().err
    assert "not measured: ip is not installed; simulated with SimGrid's SMPI" in told
    assert "skipped: smpicc is not installed" in told
