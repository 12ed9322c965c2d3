"""`almanac doctor --launchers` tries each launcher that is installed, on the hosts of the job."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from almanac.job_environment import JobEnvironment
from almanac.running.launcher_checks import APPLICATION, check_launchers, measured_check
from almanac.running.verification import Verification
from registry.database.driver import Database
from registry.model.intake import Intake
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.support.fat_tree import at, fat_tree
from tests.support.launchers import agent, require

JOB = JobEnvironment(hosts=("node00", "node01", "node02"), slots=(2, 1, 2), source="test")
OBEYS = """#!/bin/sh
case "$*" in
*--version*) echo "mpirun (Open MPI) 4.9.9"; exit;;
esac
while [ $# -gt 0 ]; do [ "$1" = --hostfile ] && file=$2; shift; done
rank=0
while read -r host rest; do echo "[1,$rank]<stdout>:almanac-rank 0 0 $host"; rank=$((rank + 1)); done < $file
"""
ELSEWHERE = OBEYS.replace("0 0 $host", "0 0 node02")


def on_path(folder: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    """Let these be the only launchers."""
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    for name in ("sh", "cat"):
        (folder / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(folder))


def test_real_launchers_obey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("mpirun.openmpi", "mpiexec.hydra")
    variables = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_plm": "rsh",
        "OMPI_MCA_plm_rsh_agent": str(agent(tmp_path)),
        "OMPI_MCA_oob_tcp_if_include": "lo",
        "OMPI_MCA_btl_tcp_if_include": "lo",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": str(agent(tmp_path)),
        "HYDRA_IFACE": "lo",
    }
    found = {
        one.launcher: one for one in check_launchers(JOB, tmp_path, environment={**os.environ, **variables})
    }
    for kind in ("Open MPI 4", "MPICH"):
        (check,) = (one for name, one in found.items() if name.startswith(kind))
        assert isinstance(check.found, Verification), check.found
        assert check.found.misplaced == ()
        run = measured_check(check, JOB, "toy")
        assert run is not None
        assert (run.verified, run.ranks, run.application) == (True, 5, APPLICATION)


def test_what_was_seen_is_stored_for_later_runs(
    embedded: Almanac, embedded_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry(embedded_database)
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree()))
    hosts = tmp_path / "hosts"
    hosts.write_text("node00\nnode00\nnode01\nnode02\n")
    monkeypatch.setenv("PBS_NODEFILE", str(hosts))
    for text, state, code in ((ELSEWHERE, "failed", 1), (OBEYS, "ok", 0)):
        folder = tmp_path / state
        folder.mkdir()
        with monkeypatch.context() as only:
            on_path(folder, only, mpirun=text, srun="#!/bin/sh\nexit 3\n")
            done = embedded("doctor", "--launchers", "--json")
        assert done.code == code
        rows = {row["check"]: row for row in json.loads(done.out)}
        assert rows["Open MPI 4.9.9"]["state"] == state
        assert (rows["Slurm"]["state"], "ended with 3" in rows["Slurm"]["seen"]) == ("warning", True)
        tried = registry.measured_runs.verified("toy", "Open MPI 4.9.9")
        assert tried is not None
        assert tried[0] is (state == "ok")
    assert registry.measured_runs.verified("toy", "Slurm") is None


def test_outside_of_a_job_nothing_is_tried(embedded: Almanac) -> None:
    outside, alone = embedded("doctor", "--launchers"), embedded("doctor", "--cluster", "a")
    assert (outside.code, "start this command inside one" in outside.out) == (1, True)
    assert (alone.code, "--cluster is for --launchers" in alone.err) == (2, True)
