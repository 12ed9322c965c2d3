"""Work on a real Dask scheduler and worker processes: nothing is lost if a worker, or the caller, ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import dask.config
import distributed
import pytest

from mapping import cluster
from mapping.cluster import Cluster, TaskStopped, installed_code, open_cluster
from registry.errors import ClusterError
from tests.support.cluster_tasks import count_until_stopped, end_worker
from tests.support.dask_cluster import DaskCluster, dask_cluster, more_workers, self_signed
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE, comes_true

pytestmark = pytest.mark.usefixtures("processes")
CALLER = """
import sys
from mapping.cluster import open_cluster
from tests.support.cluster_tasks import count_until_stopped
with open_cluster(sys.argv[1]) as cluster:
    cluster.submit(count_until_stopped, sys.argv[2]).result()
"""


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def refused(address: str, work: Callable[[Cluster], object] = lambda _: None) -> ClusterError:
    with pytest.raises(ClusterError) as error, open_cluster(address) as found:
        work(found)
    return error.value


def test_a_stop_ends_running_tasks_and_those_in_the_queue(dask: DaskCluster, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with open_cluster(dask.address) as found:
        tasks = [found.submit(count_until_stopped, str(log), 10 * PATIENCE) for _ in range(5)]
        assert comes_true(lambda: len(lines(log)) == 3)
        found.stop()
        results = [task.exception(PATIENCE) or task.result() for task in tasks]
    counted = [one for one in results if isinstance(one, int)]
    assert len(counted) >= 3
    assert all(one > 0 for one in counted)
    assert all(isinstance(one, int | TaskStopped) for one in results)
    assert lines(log).count("stopped") == len(counted)


def test_an_interrupt_yields_what_tasks_have_found(dask: DaskCluster, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        assert (phase, total) == ("cases", 4)
        if done == 1 and len(lines(log)) >= 4:
            raise KeyboardInterrupt

    with open_cluster(dask.address) as found:
        tasks = [(str(log), seconds) for seconds in (0.2, 60.0, 60.0, 60.0)]
        ended = dict(found.run(count_until_stopped, tasks, "cases", progress))
        assert found.stopped
        assert {0, 1, 2}.issubset(ended)
        assert all(one.result() > 0 for one in ended.values())


def test_a_task_that_loses_an_interrupt_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.01)

    def run() -> None:
        with cluster._interrupted_if(lambda: True):
            with suppress(KeyboardInterrupt):
                comes_true(lambda: False)
            comes_true(lambda: False)

    with pytest.raises(KeyboardInterrupt):
        run()


def test_tasks_of_a_caller_that_is_killed_end(dask: DaskCluster, tmp_path: Path) -> None:
    log = tmp_path / "log"
    words = [sys.executable, "-c", CALLER, dask.address, str(log)]
    with subprocess.Popen(words, env={**os.environ, "PYTHONPATH": str(ROOT)}) as caller:
        assert comes_true(lambda: len(lines(log)) == 1)
        caller.send_signal(signal.SIGKILL)
    assert comes_true(lambda: lines(log)[1:] == ["stopped"])


def test_a_task_of_a_worker_that_dies_runs_again_and_the_error_names_the_last_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    allowed = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
    with dask_cluster(tmp_path, 3, allowed) as other:
        error = refused(other.address, lambda found: found.submit(end_worker, str(log)).result())
        assert "2 workers died while they ran the same task" in error.reason
        assert str(error.worker) in other.log()
        assert lines(log) == ["ended", "ended"]
        with open_cluster(other.address) as found:
            assert found.machines == 1


def test_a_shared_value_survives_all_workers_that_had_it(tmp_path: Path) -> None:
    shared = {"still": "there"}
    with dask_cluster(tmp_path, 1) as other, open_cluster(other.address) as found:
        found.share(shared)
        assert found.submit(dict, shared).result() == shared
        os.kill(other.workers[0], signal.SIGKILL)
        task = found.submit(dict, shared)
        with more_workers(other):
            assert task.result(60.0) == shared


def test_a_scheduler_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.25)
    error = refused("tcp://127.0.0.1:9")
    assert error.address == "tcp://127.0.0.1:9"
    assert re.search(r"no scheduler answers \(.*0\.25 s.*leave out --scheduler", error.reason)


@pytest.mark.parametrize("address", ["localhost:8786", "http://localhost:8786", "tcp://localhost", ""])
def test_an_address_needs_a_protocol_and_a_port(address: str) -> None:
    assert "of the form tcp://HOST:PORT or tls://HOST:PORT" in refused(address).reason


def test_a_scheduler_without_workers_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1.0)
    with dask_cluster(tmp_path, 0) as other:
        assert f"no workers; start `dask worker {other.address}`" in refused(other.address).reason


def test_a_worker_with_another_version_is_named(dask: DaskCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = {**installed_code(), "Fabric Almanac": "9.9", "numpy": "1.0"}
    monkeypatch.setattr(cluster, "_own_code", lambda: mine)
    error = refused(dask.address)
    assert f"worker {error.worker} has another Fabric Almanac than this machine" in error.reason
    assert "not 9.9) and 1 more; install the same version there" in error.reason


def test_a_worker_without_this_program_is_named(tmp_path: Path) -> None:
    elsewhere = {"PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"}
    (tmp_path / "mapping.py").write_text("")  # hides the package
    with dask_cluster(tmp_path, 1, elsewhere) as other:
        error = refused(other.address)
        assert f"worker {error.worker} cannot run this program" in error.reason


def test_a_lost_scheduler_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def lose(found: Cluster) -> None:
        task = found.submit(count_until_stopped, str(log))
        assert comes_true(lambda: lines(log))
        os.kill(other.scheduler, signal.SIGKILL)
        task.result(60.0)

    with dask_cluster(tmp_path, 1) as other:
        assert "connection to the scheduler was lost" in refused(other.address, lose).reason


def test_certificates_of_dasks_configuration_are_used(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    named = {"ca-file": certificate}
    for role in ("scheduler", "worker", "client"):
        named |= {f"{role}.cert": certificate, f"{role}.key": key}
    settings = {f"distributed.comm.tls.{name}": str(path) for name, path in named.items()}
    shell = {name: name.replace(".", "__").replace("-", "_").upper() for name in settings}
    variables = {f"DASK_{shell[name]}": path for name, path in settings.items()}
    assert distributed.__version__  # imported first: its defaults come before the settings
    with dask_cluster(tmp_path, 1, variables, "tls") as other:
        assert other.address.startswith("tls://127.0.0.1:")
        with dask.config.set(settings), open_cluster(other.address) as found:
            assert found.submit(abs, -3).result() == 3
        assert "no scheduler answers" in refused(other.address.replace("tls", "tcp")).reason
