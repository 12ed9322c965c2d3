"""Sweep3D and SNAP: by hand, against what Sweep3D prints, and against recordings of SNAP."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ingest.formats.profiles import openmpi_monitoring
from ingest.generate.wave_fronts import snap, sweep3d
from ingest.options import Options
from registry.model import Profile
from tests.support.inputs import archive


def edges(profile: Profile) -> dict[tuple[int, int], tuple[float, int]]:
    """Return bytes and messages of each pair."""
    pairs = zip(profile.sender.tolist(), profile.partner.tolist(), strict=True)
    return dict(zip(pairs, zip(profile.bytes.tolist(), profile.messages.tolist(), strict=True), strict=True))


def recorded(run: str, kind: str) -> Profile:
    """Return the messages of a real run, E: of the program, I: of its collectives."""
    return openmpi_monitoring.parse(archive(f"openmpi/{run}.tar.gz"), Options(kinds=(kind,))).profiles[0]


@pytest.mark.parametrize(
    ("grid", "mesh", "planes", "block", "printed"),
    [((2, 3), (150, 150, 150), 30, 2, 840), ((2, 3), (50, 50, 50), 10, 3, 560)],
)
def test_sweep3d_sends_as_many_messages_as_it_prints(
    grid: tuple[int, int], mesh: tuple[int, int, int], planes: int, block: int, printed: int
) -> None:
    """``output.150.mpi_2x3`` and ``output.50.mpi_2x3``: "global messages per iteration"."""
    made = sweep3d(grid, mesh=mesh, planes=planes, block=block, reductions=False)
    assert made.messages.sum() == printed


def test_sweep3d_by_hand() -> None:
    """7 x 4 x 5 points on 3 x 2 ranks: 3, 2 and 2 points along x, 2 and 2 along y.

    Four octants of 6 / 3 blocks of angles times three blocks of two planes: 24 messages a pair, each of
    2 planes x 3 angles x 8 bytes = 48 for every point along the border, the last one too.
    """
    made = edges(sweep3d((3, 2), mesh=(7, 4, 5), planes=2, angles=6, block=3, reductions=False))
    assert made[0, 1] == made[1, 0] == made[1, 2] == made[4, 5] == (24 * 48 * 2, 24)
    assert made[0, 3] == made[3, 0] == (24 * 48 * 3, 24)
    assert made[1, 4] == made[2, 5] == (24 * 48 * 2, 24)
    assert len(made) == 2 * (2 * 2 + 3)


def test_snap_by_hand() -> None:
    """12 x 2 x 3 points a rank on 2 x 3 ranks along y and z, 5 angles, 4 groups, two iterations.

    4 octants x 3 chunks x 4 groups x 2 = 96 messages, each of 5 angles x 4 points x 8 bytes = 160 for every
    point along the border: 3 along z between neighbours in y, 2 along y between neighbours in z.
    """
    made = edges(snap((2, 3), points=(12, 2, 3), chunk=4, angles=5, groups=4, iterations=2, reductions=False))
    assert made[0, 1] == made[1, 0] == made[4, 5] == (96 * 160 * 3, 96)
    assert made[0, 2] == made[3, 1] == made[5, 3] == (96 * 160 * 2, 96)
    assert len(made) == 2 * (3 + 2 * 2)


def test_reductions_go_to_the_ranks_that_differ_in_a_bit() -> None:
    """Four ranks: Sweep3D sums 4 and 8 bytes in each iteration, SNAP 8 for each of three groups."""
    sweeps = sweep3d((4, 1), mesh=(4, 1, 1), planes=1, angles=1, block=1, iterations=5)
    assert edges(sweeps) == {
        (0, 1): (4 * 8 * 5 + 60, 20 + 10), (1, 0): (160 + 60, 30), (2, 3): (220, 30), (3, 2): (220, 30),
        (1, 2): (160, 20), (2, 1): (160, 20),
        (0, 2): (60, 10), (2, 0): (60, 10), (1, 3): (60, 10), (3, 1): (60, 10),
    }  # fmt: skip
    made = edges(snap((4, 1), points=(1, 1, 1), chunk=1, angles=1, groups=3, iterations=5))
    assert made[0, 2] == made[3, 1] == (8 * 3 * 5, 5)
    assert made[1, 2] == (4 * 3 * 5 * 8, 60)
    assert made[0, 1] == (4 * 3 * 5 * 8 + 8 * 3 * 5, 65)


RUN: dict[str, Any] = {"angles": 8, "chunk": 4, "groups": 4, "iterations": 5}
"""An input that fits the recordings: 16 x 16 x 16 cells in messages of 4 cells along x."""


@pytest.mark.parametrize(("run", "side"), [("snap_16", 4), ("snap_64", 8)])
def test_bytes_and_messages_of_snap_are_those_of_a_real_run(run: str, side: int) -> None:
    points = (16, 16 // side, 16 // side)
    made = snap((side, side), points=points, reductions=False, **RUN)
    assert edges(made) == edges(recorded(run, "E"))


@pytest.mark.parametrize(("run", "side"), [("snap_16", 4), ("snap_64", 8)])
def test_reductions_of_snap_are_among_the_collectives_of_a_real_run(run: str, side: int) -> None:
    points = (16, 16 // side, 16 // side)
    sent = edges(snap((side, side), points=points, reductions=False, **RUN))
    both = edges(snap((side, side), points=points, **RUN))
    real = edges(recorded(run, "I"))
    for pair, (size, messages) in both.items():
        alone = sent.get(pair, (0.0, 0))
        if size > alone[0]:
            assert (size - alone[0], messages - alone[1]) <= real[pair]


def test_the_two_programs_are_not_the_same_traffic_in_proportion() -> None:
    """The same grid of ranks, but uneven parts in Sweep3D, and other sums."""
    sweeps, made = sweep3d((16, 16)), snap((16, 16))
    assert edges(sweeps).keys() == edges(made).keys()
    ratio = sweeps.bytes / made.bytes
    assert ratio.max() / ratio.min() > 1.1
    assert len(np.unique(np.round(sweep3d((16, 16), reductions=False).bytes / made.bytes.max(), 6))) == 2
