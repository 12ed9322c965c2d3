"""Section 3.2.3 of Ajwani et al. (2013): the compiled update against one that sorts every vector anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from mapping.reconfiguration.kernels import local_update
from mapping.reconfiguration.kernels.routes import PartitionState
from mapping.reconfiguration.kernels.workspace import NONE, new_workspace
from mapping.reconfiguration.model.problem import Application, Level
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.refinement import Scale, build_guest, build_net, route_unsplit
from tests.support.slow_local_update import Case, Slow, Start, machine_of, started


def same(slow: Slow, state: PartitionState) -> None:
    assert slow.node == state.node.tolist()
    kept = [state.route[e, :count].tolist() for e, count in enumerate(state.length.tolist())]
    assert slow.routes == kept


@pytest.mark.parametrize("thorough", [True, False])
@given(given_case=started())
def test_each_step_is_the_best_of_all_until_none_is_better(
    thorough: bool, given_case: tuple[Case, Start]
) -> None:
    case, (net, guest, state) = given_case
    slow = Slow(case, state, thorough)
    work = new_workspace(net, guest, state, thorough)
    for _ in range(15):
        found = bool(local_update.find_best(work, len(state.load)))
        number = slow.make_best()
        assert (int(work.best.number[0]) if found else NONE) == number
        if not found:
            break
        local_update.make_best(work)
        same(slow, state)


@pytest.mark.parametrize("thorough", [True, False])
@pytest.mark.parametrize("link_speed", [1.0, 4.0, 30.0])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_known_to_be_stuck_changes_no_step(thorough: bool, link_speed: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 120, (260, 2))
    application = Application.from_edges(
        ends[:, 0],
        ends[:, 1],
        rng.lognormal(0, 1, 260),
        vertex_weight=rng.lognormal(0, 1, 120),
        vertices=120,
        connected=False,
    )
    nodes = np.arange(9)
    topology = Topology.of(9, np.concatenate([np.stack((nodes, (nodes + by) % 9), 1) for by in (1, 3)]))
    net, scale = build_net(topology), Scale.of(application, machine_of(9, link_speed=link_speed))
    guest, node = build_guest(Level.of(application), scale), rng.integers(0, 9, 120).astype(np.int32)
    made = []
    for known in (True, False):
        state = route_unsplit(net, guest, node.copy(), 8)
        work = new_workspace(net, guest, state, thorough)
        if not known:
            work = work._replace(memo=work.memo._replace(until=np.zeros((0, 0))))
        steps: list[int] = []
        while len(steps) < 60 and local_update.find_best(work, len(state.load)):
            steps.append(int(work.best.number[0]))
            local_update.make_best(work)
        made.append(steps)
    assert made[0] == made[1]
    assert made[0]
