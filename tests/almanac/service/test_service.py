"""The service as a whole: a process with fake collectors, whose database is killed, and which is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from almanac.service.collectors import ALMANAC
from almanac.service.service import Service
from almanac.service.spool import Spool
from almanac.settings import load_settings
from ingest.options import Options
from registry.database.local.files import ServerFiles
from registry.database.local.server import ServerAddress, status, stop
from registry.errors import DatabaseUnavailable
from registry.registry import Registry
from tests.support import paths, servers
from tests.support.forwarder import Forwarder
from tests.support.waiting import PATIENCE, comes_true

LINKS = "source,source_port,target,target_port,rate\nn1,1,s1,1,4xHDR\nn2,1,s1,2,4xHDR\n"
CONFIG = """
home = "{home}"
[serve]
port = 0
[[serve.collectors]]
name = "scan"
command = ["{python}", "{script}", "{count}"]
cluster = "c"
interval_seconds = 1
format = "links-csv"
[[serve.collectors]]
name = "stuck"
command = ["sh", "-c", "sleep 3000 & echo $! >> {pids}; sleep 3000"]
cluster = "c"
interval_seconds = 3600
[[serve.collectors]]
name = "broken"
command = ["sh", "-c", "echo no card >&2; exit 1"]
cluster = "c"
format = "ibnetdiscover"
interval_seconds = 2
[[serve.commands]]
name = "list"
arguments = ["cluster", "list"]
interval_seconds = 5
"""
COLLECTOR = """
import sys, pathlib
count = pathlib.Path(sys.argv[1])
number = int(count.read_text() if count.exists() else 0) + 1
count.write_text(str(number))
print("# observed at turn", number)
print({links!r} + f"x{{number}},1,s1,{{number % 30 + 3}},4xHDR")
"""


class Running:
    """A service in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.home, self.folder = folder / "home", folder
        names = {"count": folder / "count", "script": folder / "collector.py", "pids": folder / "pids"}
        names["script"].write_text(COLLECTOR.format(links=LINKS))
        (folder / "config.toml").write_text(CONFIG.format(home=self.home, python=sys.executable, **names))
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("ALMANAC_")},
            "ALMANAC_CONFIG": str(folder / "config.toml"),
            "PYTHONPATH": str(paths.ROOT),
        }
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*ALMANAC, "serve"], env=self.environment, stdout=log, stderr=log, cwd=folder
            )
        until(lambda: "serving on " in self.text(), self)
        self.address = self.text().partition("serving on ")[2].partition(";")[0]

    def text(self) -> str:
        return self.log.read_text()

    def get(self, path: str) -> Any:
        token = (self.home / "serve.token").read_text().strip()
        request = urllib.request.Request(self.address + path, headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return json.loads(error.read())

    def applied(self) -> list[str]:
        """Return the entries that were applied, as the log lists them."""
        lines = self.text().splitlines()
        return [line.split()[0] for line in lines if " applied: scan" in line]

    def kill_database(self) -> None:
        state = ServerFiles(self.home.resolve()).read_state()
        assert state is not None
        for pid in (state.supervisor, state.java):
            with suppress(psutil.NoSuchProcess):
                psutil.Process(pid).kill()


def until(condition: Callable[[], object], service: Running | None = None) -> None:
    came = comes_true(condition, unless=lambda: service and service.process.poll() is not None)
    assert came, service and service.text()


@pytest.fixture
def service(tmp_path: Path, processes: None) -> Iterator[Running]:
    running = Running(tmp_path)
    yield running
    running.process.kill()
    running.process.wait()
    stop(running.home)


@pytest.mark.timeout(900)
def test_a_service_outlives_its_database_and_stops_in_order(service: Running) -> None:
    """Each output of the collector becomes one observation with its own time, also those without database."""
    spool = service.home / "spool"
    until(lambda: len(service.applied()) >= 2, service)
    assert service.get("/clusters")[0]["cluster"] == "c"
    health = {task["task"]: task for task in service.get("/healthz")["tasks"]}
    assert health["scan"]["age_seconds"] < PATIENCE
    assert (health["broken"]["failing"], health["scan"]["failing"]) == (True, False)

    service.kill_database()
    before = len(service.applied())
    until(lambda: "database away: " in service.text(), service)
    until(lambda: len(service.applied()) >= before + 3 and service.get("/healthz")["status"] == "ok", service)
    # the first of two failures since the database is open is recorded when the second is logged
    until(lambda: service.text().rpartition("database: ")[2].count("broken: ") >= 2, service)

    stuck = [int(pid) for pid in (service.folder / "pids").read_text().split()]
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(PATIENCE) == 0
    assert service.text().splitlines()[-1] == "stopped"
    assert "Traceback" not in service.text()
    until(lambda: not any(psutil.pid_exists(pid) for pid in stuck))

    done = subprocess.run(
        [*ALMANAC, "spool", "apply", "--json"], env=service.environment, capture_output=True
    )
    rest = [row["entry"] for row in json.loads(done.stdout)]
    names = service.applied() + rest
    assert names == sorted(set(names))
    assert list(spool.glob("0*")) == list(spool.glob(".draft-*")) == []
    running = status(service.home)
    assert running is not None
    with running.address.connect() as database:
        registry = Registry(database)
        times = [row[0] for row in database.query("MATCH (o:Observation) RETURN o.at ORDER BY o.at")[1]]
        assert len(times) == len(names)
        assert all(0 <= int(name) / 1e9 - at.timestamp() < 5 for name, at in zip(names, times, strict=True))
        outcomes = {run.outcome for run in registry.runs.list("c") if run.files == ("broken",)}
        assert outcomes == {"failed"}
        states = {source.format: source for source in registry.runs.sources("c")}
        assert "no card" in states["ibnetdiscover"].error
        assert states["links-csv"].last_outcome == "saved"


@pytest.fixture
def forwarded(server: ServerAddress, tmp_path: Path) -> Iterator[tuple[Forwarder, Service, list[str]]]:
    """A service without tasks, on each server behind a forwarder, and the lines of its log."""
    parts, lines = urlsplit(server.uri), list[str]()
    assert parts.hostname is not None
    assert parts.port is not None
    forwarder = Forwarder((parts.hostname, parts.port))
    there = {"ALMANAC_CONFIG": os.devnull, "ALMANAC_HOME": str(tmp_path)}
    settings = load_settings(f"bolt://127.0.0.1:{forwarder.port}", {**servers.variables(server), **there})
    service = Service(settings, (), Spool(settings.spool, 10**6), lines.append)
    service.start()
    yield forwarder, service, lines
    service.stop()
    forwarder.stop()


def test_a_database_that_restarts_is_opened_again_and_gets_what_waited(
    forwarded: tuple[Forwarder, Service, list[str]], registry: Registry, tmp_path: Path
) -> None:
    forwarder, service, lines = forwarded
    until(lambda: service.away is None)
    forwarder.stop()
    scan = tmp_path / "links.csv"
    scan.write_text(LINKS)
    service.spool.queue([str(scan)], Options(cluster="c"))
    service.check_soon()
    until(lambda: service.away is not None)
    with pytest.raises(DatabaseUnavailable, match="tried again by itself"):
        service.registry()
    assert len(service.spool.waiting()) == 1
    forwarder.start()
    until(lambda: service.spool.waiting() == [] and service.away is None)
    assert [info.name for info in registry.fabrics.clusters()] == ["c"]
    assert sum("database away" in line for line in lines) == 1
    assert service.registry().fabrics.clusters() == registry.fabrics.clusters()
