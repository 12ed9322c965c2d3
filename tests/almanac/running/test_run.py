"""The command of a placed run: the launcher's own options stay, those that contradict the order go."""

from __future__ import annotations

from pathlib import Path

import pytest

from almanac.running.call import Unplaced, parse_call
from almanac.running.launchers import LAUNCHERS, Launcher
from almanac.running.order import Order
from almanac.running.run import apply_order

OPEN_MPI, _, _, MPICH, INTEL_MPI, SLURM, FLUX, DEEPSPEED = LAUNCHERS
ORDER = Order(ranks=4, text="b\na\nb\na\n", placement="p1", reasons=("found",))


@pytest.mark.parametrize(
    ("launcher", "given", "placed"),
    [
        (
            OPEN_MPI,
            "mpirun -x A --host a:2,b:2 -np 4 --bind-to core ./app -n 9",
            "mpirun --hostfile {file} --map-by seq -n 4 -x A --bind-to core ./app -n 9",
        ),
        (MPICH, "mpiexec -hosts a,b -ppn 2 -l ./app", "mpiexec -f {file} -n 4 -l ./app"),
        (
            INTEL_MPI,
            "mpirun -hosts a,b -perhost 2 -prot ./app",
            "mpirun -machinefile {file} -n 4 -prot ./app",
        ),
        (
            SLURM,
            "srun -N 2 -n4 --mpi=pmix ./app",
            "srun --ntasks=4 --distribution=arbitrary --mpi=pmix ./app",
        ),
        (
            FLUX,
            "flux run -N2 --ntasks 4 -o verbose=1 ./app -n 9",
            "flux run --taskmap=hostfile:{file} -N2 --ntasks 4 -o verbose=1 ./app -n 9",
        ),
        (
            DEEPSPEED,
            "deepspeed -H hosts --master_port 9999 train.py --hostfile x",
            "deepspeed --hostfile {file} --master_port 9999 train.py --hostfile x",
        ),
    ],
)
def test_the_order_replaces_hosts_and_ranks(
    launcher: Launcher, given: str, placed: str, tmp_path: Path
) -> None:
    call = parse_call(given.split(), launcher.values, 1 + len(launcher.subcommand))
    run = apply_order(call, launcher, ORDER, tmp_path / "orders")
    file = tmp_path / "orders" / f"p1.{launcher.format}"
    assert run.words == tuple(placed.format(file=file).split())
    assert run.environment == ({"SLURM_HOSTFILE": str(file)} if launcher is SLURM else {})
    assert file.read_text() == ORDER.text
    assert file.stat().st_mode & 0o777 == 0o600
    assert run.reasons == ("found", f"{launcher.name} takes the order from {file}")


def test_a_file_that_cannot_be_written_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "orders").write_text("no folder")
    with pytest.raises(Unplaced, match="cannot be written"):
        apply_order(parse_call(["srun", "./app"], SLURM.values), SLURM, ORDER, tmp_path / "orders")
