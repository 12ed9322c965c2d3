"""Hosts and slots of the job in which a process runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from almanac.job_environment import HOST_FILES, JobEnvironment, read_environment
from registry.errors import ConfigError, InputError

SLURM = {
    "SLURM_JOB_NODELIST": "node[0001-0004,0033]",
    "SLURM_TASKS_PER_NODE": "4(x3),2(x2)",
    "SLURM_NTASKS": "16",
    "SLURM_JOB_ID": "77",
    "SLURM_CLUSTER_NAME": "ft",
}


class TestReadEnvironment:
    """What is read from the environment."""

    def test_slurm_has_hosts_slots_and_ranks(self) -> None:
        assert read_environment(SLURM) == JobEnvironment(
            hosts=("node0001", "node0002", "node0003", "node0004", "node0033"),
            slots=(4, 4, 4, 2, 2),
            ranks=16,
            job="77",
            cluster="ft",
            source="SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE",
        )

    def test_slurm_without_tasks_takes_a_rank_a_processor(self) -> None:
        found = read_environment({"SLURM_JOB_NODELIST": "a[1-2]", "SLURM_JOB_CPUS_PER_NODE": "64(x2)"})
        assert (found.hosts, found.slots, found.ranks) == (("a1", "a2"), (64, 64), None)

    @pytest.mark.parametrize("variable", HOST_FILES)
    def test_open_mpi_names_a_host_file(self, variable: str, tmp_path: Path) -> None:
        path = tmp_path / "hosts"
        path.write_text("# two kinds\nn2 slots=3\nn1:2\n\nn3 slots = 1 max_slots=4\nn2\n")
        found = read_environment({variable: str(path)})
        assert (found.hosts, found.slots) == (("n2", "n1", "n3"), (4, 2, 1))
        assert found.source == f"{variable}={path}"

    def test_pbs_writes_a_line_a_slot(self, tmp_path: Path) -> None:
        path = tmp_path / "nodes"
        path.write_text("n1\nn1\nn2\n")
        found = read_environment({"PBS_NODEFILE": str(path), "PBS_JOBID": "9"})
        assert (found.hosts, found.slots, found.job) == (("n1", "n2"), (2, 1), "9")

    def test_slurm_comes_before_a_host_file(self) -> None:
        assert read_environment({**SLURM, HOST_FILES[0]: "/nowhere"}).job == "77"

    @pytest.mark.parametrize(
        ("environment", "says"),
        [
            ({}, "this is not inside a job"),
            ({"SLURM_JOB_NODELIST": "a[1-3]"}, "neither SLURM_TASKS_PER_NODE"),
            ({"SLURM_JOB_NODELIST": "a[1-3]", "SLURM_TASKS_PER_NODE": "1,1"}, "has 2 hosts"),
        ],
    )
    def test_contradictions_are_reported(self, environment: dict[str, str], says: str) -> None:
        with pytest.raises(ConfigError, match=says):
            read_environment(environment)

    @pytest.mark.parametrize("text", ["n1 slots=0\n", "n1 4\n", "n1:x\n", "# none\n"])
    def test_a_host_file_that_makes_no_sense_is_refused(self, text: str, tmp_path: Path) -> None:
        path = tmp_path / "hosts"
        path.write_text(text)
        with pytest.raises(InputError):
            read_environment({HOST_FILES[0]: str(path)})
