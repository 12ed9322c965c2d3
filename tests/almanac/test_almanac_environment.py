"""What surrounds a command: files of secrets, the job that it runs in, and the folder of compiled kernels."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from almanac.job_environment import HOST_FILES, JobEnvironment, read_environment
from almanac.kernel_cache import VARIABLE, choose_kernel_cache
from almanac.secret_files import read_secret
from registry.errors import ConfigError, InputError


def test_a_missing_file_is_an_error_or_created_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "secret"
    with pytest.raises(ConfigError, match="No such file"):
        read_secret(path, "key")
    first = read_secret(path, "key", create=True)
    assert len(first) == 64
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_secret(path, "key", create=True) == read_secret(path, "key") == first


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("hidden")
    for mode in (0o604, 0o640, 0o644, 0o660):
        path.chmod(mode)
        with pytest.raises(ConfigError, match=f"chmod 600 {path}") as caught:
            read_secret(path, "some_file")
        assert caught.value.key == "some_file"
        assert "hidden" not in str(caught.value)


SLURM = {
    "SLURM_JOB_NODELIST": "node[0001-0004,0033]",
    "SLURM_TASKS_PER_NODE": "4(x3),2(x2)",
    "SLURM_NTASKS": "16",
    "SLURM_JOB_ID": "77",
    "SLURM_CLUSTER_NAME": "ft",
}


def test_slurm_has_hosts_slots_and_ranks() -> None:
    assert read_environment(SLURM) == JobEnvironment(
        hosts=("node0001", "node0002", "node0003", "node0004", "node0033"),
        slots=(4, 4, 4, 2, 2),
        ranks=16,
        job="77",
        cluster="ft",
        source="SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE",
    )
    # without tasks a rank takes a processor
    found = read_environment({"SLURM_JOB_NODELIST": "a[1-2]", "SLURM_JOB_CPUS_PER_NODE": "64(x2)"})
    assert (found.hosts, found.slots, found.ranks) == (("a1", "a2"), (64, 64), None)
    assert read_environment({**SLURM, HOST_FILES[0]: "/nowhere"}).job == "77"


def test_host_files_of_open_mpi_and_pbs_are_read(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# two kinds\nn2 slots=3\nn1:2\n\nn3 slots = 1 max_slots=4\nn2\n")
    for variable in HOST_FILES:
        found = read_environment({variable: str(path)})
        assert (found.hosts, found.slots) == (("n2", "n1", "n3"), (4, 2, 1))
        assert found.source == f"{variable}={path}"
    path.write_text("n1\nn1\nn2\n")
    found = read_environment({"PBS_NODEFILE": str(path), "PBS_JOBID": "9"})
    assert (found.hosts, found.slots, found.job) == (("n1", "n2"), (2, 1), "9")


def test_contradictions_are_reported(tmp_path: Path) -> None:
    for environment, reason in (
        ({}, "this is not inside a job"),
        ({"SLURM_JOB_NODELIST": "a[1-3]"}, "neither SLURM_TASKS_PER_NODE"),
        ({"SLURM_JOB_NODELIST": "a[1-3]", "SLURM_TASKS_PER_NODE": "1,1"}, "has 2 hosts"),
    ):
        with pytest.raises(ConfigError, match=reason):
            read_environment(environment)
    path = tmp_path / "hosts"
    for text in ("n1 slots=0\n", "n1 4\n", "n1:x\n", "# none\n"):
        path.write_text(text)
        with pytest.raises(InputError):
            read_environment({HOST_FILES[0]: str(path)})


@pytest.fixture
def writable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Path], None]:
    """A function that allows writing below one folder only."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("ALMANAC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ALMANAC_CONFIG", os.devnull)

    def allow(folder: Path) -> None:
        access = lambda path, mode: Path(path).is_relative_to(folder)  # noqa: E731
        monkeypatch.setattr(os, "access", access)

    return allow


def test_a_writable_or_chosen_folder_needs_no_other(
    writable: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    writable(Path("/"))
    choose_kernel_cache()
    assert VARIABLE not in os.environ
    writable(Path("/nothing"))
    monkeypatch.setenv(VARIABLE, "/chosen")
    choose_kernel_cache()
    assert os.environ[VARIABLE] == "/chosen"


def test_a_read_only_installation_keeps_kernels_in_the_data_folder(
    writable: Callable[[Path], None], tmp_path: Path
) -> None:
    writable(tmp_path)
    choose_kernel_cache()
    assert os.environ[VARIABLE] == str(tmp_path / "home" / "kernels")
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


@pytest.mark.parametrize("wrong", [False, True], ids=["no folder", "wrong settings"])
def test_without_any_folder_kernels_are_kept_for_one_process(
    writable: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: bool
) -> None:
    """Wrong settings are reported by the command that uses them; `almanac run` starts the job in spite."""
    writable(tmp_path if wrong else tmp_path / "nothing")
    if wrong:
        monkeypatch.setenv("ALMANAC_IDLE_SECONDS", "soon")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    choose_kernel_cache()
    assert Path(os.environ[VARIABLE]).parent == tmp_path
    assert not (tmp_path / "home").exists()
