"""The service as a process whose database is killed, and which is stopped; its configuration."""

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

from almanac.serve.collectors import ALMANAC
from almanac.serve.configuration import ServiceSettings, read_service
from almanac.serve.service import Service
from almanac.settings import load_settings
from almanac.spool import Spool
from ingest.options import Options
from registry.database.embedded_files import ServerFiles
from registry.database.embedded_server import ServerAddress, status, stop
from registry.errors import ConfigError, DatabaseUnavailable
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


def test_a_restarted_database_gets_what_waited(
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


SCAN = """
[[serve.collectors]]
name = "scan"
command = ["ibnetdiscover", "-C", "mlx5_0"]
cluster = "hpc1"
interval_seconds = 900
"""
ADVISE = """
[[serve.commands]]
name = "advise"
arguments = ["advise", "jobs", "hpc1"]
interval_seconds = 3600
timeout_seconds = 60
jitter_seconds = 5
"""


def read_from(folder: Path, text: str, **options: Any) -> ServiceSettings:
    path = folder / "config.toml"
    path.write_text(f'home = "{folder}"\n{text}')
    return read_service(load_settings(None, {"ALMANAC_CONFIG": str(path)}), **options)


def test_an_empty_configuration_has_defaults_and_a_token_and_tasks_are_read(tmp_path: Path) -> None:
    first = read_from(tmp_path, "")
    assert (first.address, first.port, first.tasks) == ("127.0.0.1", 8600, ())
    assert len(first.token) >= 32
    assert first.token_file.stat().st_mode & 0o777 == 0o600
    assert read_from(tmp_path, "").token == first.token
    assert read_from(tmp_path, "[serve]\nport = 1\n", address="::1", port=7).port == 7
    scan, advise = read_from(tmp_path, SCAN + 'format = "ibnetdiscover"\nrate = 1e9\n' + ADVISE).tasks
    assert scan.command == ("ibnetdiscover", "-C", "mlx5_0")
    assert (scan.interval, scan.timeout, scan.jitter) == (900, 900, 0)
    assert scan.options is not None
    assert (scan.options.cluster, scan.options.format, scan.options.rate) == ("hpc1", "ibnetdiscover", 1e9)
    assert (advise.command, advise.timeout, advise.jitter) == (("advise", "jobs", "hpc1"), 60, 5)
    assert advise.options is None


def test_wrong_values_are_named_with_key_and_file(tmp_path: Path) -> None:
    for text, key, words in (
        ("serve = 3\n", "serve", "write \\[serve\\]"),
        ("[serve]\nprot = 1\n", "serve.prot", "known: address, port"),
        ('[serve]\nport = "x"\n', "serve.port", "is not a number from 0 to 65535"),
        ("[serve]\nport = 65536\n", "serve.port", "from 0 to 65535"),
        ("[serve]\nport = true\n", "serve.port", "from 0 to 65535"),
        ("[serve]\nport = nan\n", "serve.port", "from 0 to 65535"),
        ("[serve]\naddress = 1\n", "serve.address", "is not a text"),
        ("[serve]\ncollectors = 1\n", "serve.collectors", "write \\[\\[serve.collectors\\]\\]"),
        (SCAN.replace('name = "scan"\n', ""), "serve.collectors[0].name", "is missing"),
        (SCAN.replace('"scan"', '"../scan"'), "serve.collectors[0].name", "is not a name"),
        (SCAN + SCAN, "serve.name", "'scan' is given twice"),
        (SCAN.replace('["ibnetdiscover", "-C", "mlx5_0"]', '"ls"'), "serve.collectors[0].command", "list"),
        (SCAN.replace('["ibnetdiscover", "-C", "mlx5_0"]', "[]"), "serve.collectors[0].command", "list"),
        (SCAN.replace('cluster = "hpc1"\n', ""), "serve.collectors[0].cluster", "is missing"),
        (SCAN.replace("hpc1", "a/b"), "serve.collectors[0].cluster", "'a/b' is no name"),
        (SCAN.replace("= 900", "= 0"), "serve.collectors[0].interval_seconds", "from 1 to"),
        (SCAN.replace("interval_seconds = 900", ""), "serve.collectors[0].interval_seconds", "is missing"),
        (SCAN + "timeout_seconds = inf\n", "serve.collectors[0].timeout_seconds", "from 1 to"),
        (SCAN + "jitter_seconds = -1\n", "serve.collectors[0].jitter_seconds", "from 0 to"),
        (SCAN + 'shell = "true"\n', "serve.collectors[0].shell", "known"),
        (ADVISE.replace("arguments", "command"), "serve.commands[0].command", "known"),
    ):
        with pytest.raises(ConfigError, match=words) as caught:
            read_from(tmp_path, text)
        assert (caught.value.key, caught.value.path) == (key, str(tmp_path / "config.toml"))


def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    for content, mode, words in (
        *((None, 0, "No such file"), ("0123456789abcdef\n", 0o644, "chmod 600")),
        *(("0123456789abcdef\n", 0o640, "chmod 600"), ("short\n", 0o600, "at least 16")),
        *(("", 0o600, "at least 16"), ("0123456789abcdé \n", 0o600, "ASCII")),
    ):
        if content is not None:
            token.write_text(content)
            token.chmod(mode)
        with pytest.raises(ConfigError, match=words) as caught:
            read_from(tmp_path, f'[serve]\ntoken_file = "{token}"\n')
        assert (caught.value.key, caught.value.path) == ("serve.token_file", str(token))
