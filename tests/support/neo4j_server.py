"""The real Neo4j of the tests: one per run, on loopback, stopped at the end.

Looked for in this order: ``ALMANAC_TEST_NEO4J_URI`` (with ``_USER``, ``_PASSWORD`` and ``_NAME``; the
tests EMPTY that database), a Docker engine, else Java 17 with the jars from Maven Central, which are
copied once to the user's cache folder.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import platformdirs
import psutil
from filelock import FileLock

from registry.database.embedded_server import ServerAddress
from registry.database.schema import migrate
from registry.database.supervisor import die_with_parent
from registry.errors import DatabaseUnavailable
from tests.support.servers import Unavailable
from tests.support.waiting import PATIENCE

VERSION = "5.26.16"
IMAGE = f"neo4j:{VERSION}-community"
FIRST_COMPILER_ONLY = "-XX:TieredStopAtLevel=1"
"""Option of Java. Servers of tests live for minutes: its second compiler costs them more than it saves."""
QUICK_START = ("-XX:+UseSerialGC", FIRST_COMPILER_ONLY)
OPENED = ("java.nio", "java.io", "sun.nio.ch", "java.util.concurrent", "java.lang")
POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>almanac</groupId><artifactId>neo4j-for-tests</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.neo4j</groupId><artifactId>neo4j</artifactId><version>{VERSION}</version></dependency>
  </dependencies>
</project>
"""


@contextmanager
def kept(folder: Path) -> Iterator[dict[str, str | None]]:
    """Start the Neo4j of a test run, for `tests.support.servers.kept`."""
    with neo4j(folder) as address:
        with address.connect() as database:
            migrate(database)
        yield {key: getattr(address, key) for key in ("uri", "user", "password", "name")}


@contextmanager
def neo4j(folder: Path) -> Iterator[ServerAddress]:
    """Start a Neo4j server that stores its data in an empty `folder`.

    Raises:
        Unavailable
    """
    given = os.environ.get("ALMANAC_TEST_NEO4J_URI")
    if given:
        yield ServerAddress(
            uri=given,
            user=os.environ.get("ALMANAC_TEST_NEO4J_USER", "neo4j"),
            password=os.environ.get("ALMANAC_TEST_NEO4J_PASSWORD", ""),
            name=os.environ.get("ALMANAC_TEST_NEO4J_NAME"),
        )
    elif docker_answers():
        with _container() as address:
            yield address
    else:
        with _java_process(folder) as address:
            yield address


def docker_answers() -> bool:
    """Return True if a Docker engine answers, asked in a new process: the library leaves sockets open."""
    question = "import docker; docker.from_env(timeout=5).ping()"
    asked = subprocess.run([sys.executable, "-c", question], capture_output=True, timeout=PATIENCE)
    return asked.returncode == 0


@contextmanager
def _container() -> Iterator[ServerAddress]:
    from testcontainers.community.neo4j import Neo4jContainer

    password = secrets.token_hex(12)
    with Neo4jContainer(IMAGE, password=password) as container:
        yield ServerAddress(uri=container.get_connection_url(), user="neo4j", password=password)


@contextmanager
def _java_process(folder: Path) -> Iterator[ServerAddress]:
    java = shutil.which("java")
    if java is None:
        reason = "ALMANAC_TEST_NEO4J_URI is not set, no Docker engine answers, and there is no Java 17"
        raise Unavailable(f"no Neo4j for the tests: {reason}")
    jars = f"{maven_jars()}{os.sep}*"
    password = secrets.token_hex(12)
    port = _free_port()
    (folder / "conf").mkdir()
    (folder / "conf" / "neo4j.conf").write_text(_configuration(folder, port), "utf-8")
    _set_password(java, jars, folder, password)
    command = [java, "-Xmx512m", *QUICK_START]
    command += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    command += ["-cp", jars, "org.neo4j.server.CommunityEntryPoint"]
    command += [f"--home-dir={folder}", f"--config-dir={folder / 'conf'}"]
    log = folder / "output.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent() if sys.platform == "linux" else None,
        )
    atexit.register(_kill, process)
    try:
        address = ServerAddress(uri=f"bolt://127.0.0.1:{port}", user="neo4j", password=password)
        await_answer(address, process, log)
        yield address
    finally:
        _kill(process)
        atexit.unregister(_kill)


def maven_jars() -> Path:
    """Return the folder of Neo4j's jars, copied from Maven Central if they are missing.

    Raises:
        Unavailable
    """
    cache = platformdirs.user_cache_path("fabric-almanac")
    wanted = cache / f"neo4j-{VERSION}"
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "neo4j.lock", timeout=900):
        if wanted.is_dir():
            return wanted
        maven = shutil.which("mvn")
        if maven is None:
            raise Unavailable(f"no Neo4j for the tests: {wanted} is missing and there is no mvn to fill it")
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            _copy_dependencies(maven, Path(folder))
            (Path(folder) / "lib").rename(wanted)
    return wanted


def _copy_dependencies(maven: str, folder: Path) -> None:
    (folder / "pom.xml").write_text(POM, "utf-8")
    command = [maven, "--batch-mode", "--quiet", "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={folder / 'lib'}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=850, check=False)
    if done.returncode:
        raise Unavailable(f"no Neo4j for the tests: mvn failed: {(done.stdout + done.stderr)[-2000:]}")


def _configuration(folder: Path, port: int) -> str:
    return f"""server.default_listen_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{port}
server.bolt.advertised_address=127.0.0.1:{port}
server.http.enabled=false
server.https.enabled=false
dbms.usage_report.enabled=false
server.memory.pagecache.size=64m
server.directories.data={folder / "data"}
server.directories.logs={folder / "logs"}"""


def _set_password(java: str, jars: str, folder: Path, password: str) -> None:
    command = [java, *QUICK_START, "-cp", jars, "org.neo4j.cli.AdminTool"]
    command += ["dbms", "set-initial-password", password]
    variables = {**os.environ, "NEO4J_HOME": str(folder), "NEO4J_CONF": str(folder / "conf")}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        raise RuntimeError(f"Neo4j takes no password: {done.stdout}{done.stderr}")


def await_answer(address: ServerAddress, process: subprocess.Popen[bytes] | psutil.Popen, log: Path) -> None:
    """Return once a server answers.

    Raises:
        RuntimeError: It ended, or does not answer within `PATIENCE` seconds.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            address.connect().close()
        except DatabaseUnavailable as error:
            if process.poll() is not None or time.monotonic() > deadline:
                said = log.read_text("utf-8", "replace")[-2000:]
                raise RuntimeError(f"Neo4j does not start: {said}") from error
            time.sleep(0.3)
        else:
            return


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
