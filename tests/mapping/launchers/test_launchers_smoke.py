"""Each launcher that is installed runs its launch line: each rank prints the host that it was placed on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mapping.launchers.conftest import HYDRA, OPEN_MPI, RANKS, SLURM, launch_words
from tests.support.launchers import Slurm, printed


@pytest.mark.parametrize("format", ["openmpi-rankfile", "openmpi-hostfile"])
def test_open_mpi_runs_the_launch_line(
    format: str, openmpi: list[object], tmp_path: Path, two_processors: None
) -> None:
    _, *words = launch_words(tmp_path, format, "mpirun")
    assert printed([*openmpi, *words, *OPEN_MPI]) == RANKS


def test_mpich_runs_the_launch_line(hydra: list[object], tmp_path: Path) -> None:
    _, *words = launch_words(tmp_path, "mpich-machinefile", "mpiexec")
    assert printed([*hydra, *words, *HYDRA]) == RANKS


def test_slurm_runs_the_launch_line(scheduler: Slurm, tmp_path: Path) -> None:
    variable, *words = launch_words(tmp_path, "slurm-hostfile", "SLURM_HOSTFILE")
    name, _, value = variable.partition("=")
    assert printed([*words, *SLURM], {**scheduler.environment, name: value}) == RANKS
