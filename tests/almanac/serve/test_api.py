"""The HTTP API: answers are those of the commands, with a token, errors are JSON; odd clients."""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from almanac.serve import api as connections
from almanac.serve.api import QUESTIONS, build, listen, server
from almanac.serve.configuration import Task
from almanac.serve.service import Service, TaskStates
from almanac.spool import Spool
from ingest.options import Options
from mapping.checks.finding import ErrorLimits
from registry.errors import ConfigError, DatabaseUnavailable
from registry.registry import Registry
from registry.units import MOMENTS
from tests.almanac.conftest import Almanac
from tests.support.busy_cluster import PROPOSED, advise, fill, job, place
from tests.support.waiting import PATIENCE, comes_true

TOKEN = "0123456789abcdef"


class Idle:
    """A service without threads, whose database the test takes away."""

    def __init__(self, registry: Registry, spool: Spool) -> None:
        options = Options(cluster="toy")
        task = Task(name="scan", command=("x",), interval=1, timeout=1, jitter=0, options=options)
        self.open, self.spool, self.checks = registry, spool, 0
        self.states = TaskStates(spool.folder / "states", [task])
        self.away: str | None = None
        self.limits = ErrorLimits()

    def registry(self) -> Registry:
        if self.away is not None:
            raise DatabaseUnavailable("bolt://x", self.away, "wait")
        return self.open

    def check_soon(self) -> None:
        self.checks += 1


@dataclass
class Client:
    address: str
    service: Idle

    def get(self, path: str, token: str | None = TOKEN, method: str = "GET") -> tuple[int, str]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(self.address + path, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def json(self, path: str) -> Any:
        code, text = self.get(path)
        assert code == 200, text
        return json.loads(text)

    def problem(self, path: str, **options: Any) -> tuple[int, str, str]:
        code, text = self.get(path, **options)
        fields = json.loads(text)
        assert set(fields) == KEYS
        return code, fields["error"], fields["reason"]


@contextmanager
def answering(service: object, *hosts: tuple[str, ...]) -> Iterator[int]:
    """Answer for a service; yield the port."""
    running = server(build(cast(Service, service), TOKEN, *hosts))
    with listen("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=running.run, args=([listener],))
        thread.start()
        assert comes_true(lambda: running.started)
        yield listener.getsockname()[1]
        running.should_exit = True
        thread.join()


@pytest.fixture
def client(registry: Registry, tmp_path: Path) -> Iterator[Client]:
    service = Idle(registry, Spool(tmp_path / "spool", 1_000_000))
    with answering(service) as number:
        yield Client(f"http://127.0.0.1:{number}", service)


@pytest.fixture
def filled(registry: Registry) -> Registry:
    fill(registry, job("7", 2), job("8", 3, 4, user="bob"))
    present = place(registry, "7")
    proposed = place(registry, "7", role=PROPOSED, seconds=2.0)
    advise(registry, "7", present, proposed)
    return registry


OUT_OF_RANGE = (
    "/clusters/toy?at=9999-12-31T23:59:59-23:59",
    "/clusters/toy/changes?start=0001-01-01T00:00:00%2B23:59",
    "/clusters/toy/ports?top=1e300",
    "/jobs?limit=nan",
)
COMMANDS = {
    "/clusters": "cluster list", "/clusters/toy": "cluster show toy",
    "/clusters/toy?at=now": "cluster show toy --at now",
    "/clusters/toy/changes": "cluster changes toy",
    "/clusters/toy/changes?end=2030-01-01T00:00:00Z": "cluster changes toy --to 2030-01-01",
    "/clusters/toy/checks": "cluster check toy --fail-on never",
    "/clusters/toy/layouts": "cluster layouts toy",
    "/clusters/toy/congestion?at=2030-01-01&top=3": "congestion toy --at 2030-01-01 --top 3",
    "/clusters/toy/congestion?at=2030-01-01&network=true": "congestion toy --at 2030-01-01 --network",
    "/clusters/toy/ports?at=2030-01-01&top=2": "ports toy --at 2030-01-01 --top 2",
    "/clusters/toy/today?since=2020-01-01": "today toy --since 2020-01-01 --fail-on never",
    "/jobs": "job list", "/jobs?cluster=toy&limit=2": "job list --cluster toy", "/jobs/7": "job show 7",
    "/jobs/8?cluster=toy": "job show 8 --cluster toy", "/profiles": "profile list",
    "/profiles/ring": "profile show ring", "/placements": "history placements",
    "/placements?cluster=toy&job=7&limit=1": "history placements --cluster toy --job 7 --top 1",
    "/placements?application=cg": "history placements --application cg",
    "/placements/regressions": "history regressions", "/simulations": "history simulations",
    "/circuit-plans?cluster=toy": "history circuits --cluster toy",
}  # fmt: skip


def test_every_answer_is_that_of_its_command(client: Client, filled: Registry, almanac: Almanac) -> None:
    for path, command in COMMANDS.items():
        done = almanac(*command.split(), "--json")
        shown, printed = client.json(path), done.json
        if command.startswith("today"):  # its time is now
            assert printed.pop("at") < shown.pop("at")
            for source in (*printed["sources"], *shown["sources"]):
                source["seen"] = source["seen"].partition(", ingested ")[0]
        assert shown == printed, path
    assert len(client.json("/placements")) == 2
    assert client.json("/jobs/7")["hosts"] == ["node03", "node00"]
    (row,) = client.json("/clusters/toy/advice")["jobs"]
    assert (row["job"], row["gain"], row["present_seconds"], row["proposed_seconds"]) == ("7", 2.0, 4.0, 2.0)
    assert {"present_placement", "proposed_placement", "in_background", "moved", "at"} <= row.keys()
    code, text = client.get("/metrics")
    families, ours = (
        {one.name for one in text_string_to_metric_families(given)}
        for given in (text, almanac.ok("metrics").out)
    )
    assert set() < ours < families
    assert (code, "almanac_spool_entries" in families) == (200, True)


def test_every_question_is_compared_with_its_command() -> None:
    asked = {path.split("?")[0] for path in COMMANDS} | {"/clusters/toy/advice"}
    named = (path.replace("{cluster}", "toy").replace("{profile}", "ring") for path in QUESTIONS)
    assert {path.replace("{job}", "7") for path in named} <= asked


def test_without_the_token_only_the_health_is_shown(client: Client) -> None:
    for token in (None, "", "0123456789abcdeX", quote("é"), TOKEN + "x"):
        for path in ("/clusters", "/jobs/7", "/metrics"):
            assert client.problem(path, token=token)[0] == 401
        assert client.get("/healthz", token=token)[0] == 200


def test_errors_are_json(client: Client, filled: Registry) -> None:
    code, error, reason = client.problem("/clusters/tow")
    assert (code, error) == (404, "UnknownName")
    assert reason.startswith("there is no cluster 'tow'; closest: toy")
    for path in (
        *("/jobs/nosuch", "/placements?application=nosuch", "/placements?job=nosuch"),
        "/placements/regressions?application=nosuch",
    ):
        assert client.problem(path)[:2] == (404, "UnknownName")
    assert client.problem("/jobs?cluster=tow")[0] == 404
    assert client.problem("/nosuch")[:2] == (404, "HTTPError")
    assert client.problem("/clusters", method="DELETE")[0] == 405
    assert client.problem("/clusters/toy?at=soon")[2].endswith("is not a time such as " + MOMENTS)
    limit = (400, "UsageError", "limit: Input should be greater than or equal to 1")
    assert client.problem("/jobs?limit=0") == limit
    for path in ("/jobs?limit=1000000", "/clusters/toy?at=soon", f"/clusters/{'x' * 201}", *OUT_OF_RANGE):
        assert client.problem(path)[:2] == (400, "UsageError")
    for top in ("0", "100000"):
        assert client.problem(f"/clusters/toy/congestion?top={top}")[0] == 400
    for name in ("%1b%5b31m", "%00", "%27%3B%20MATCH%20(n)%20DELETE%20n"):
        assert client.problem(f"/clusters/{name}")[0] == 404


def test_while_the_database_is_away_health_and_metrics_say_so(client: Client, filled: Registry) -> None:
    assert "almanac_database_up 1.0" in client.get("/metrics")[1]
    client.service.away = "refused"
    code, error, reason = client.problem("/clusters")
    assert (code, error) == (503, "DatabaseUnavailable")
    assert "refused" in reason
    assert client.service.checks == 1
    code, text = client.get("/healthz")
    health = json.loads(text)
    assert (code, health["status"]) == (503, "database away")
    assert health["tasks"][0]["age_seconds"] is None
    code, text = client.get("/metrics")
    assert code == 200
    values = {one.name: one.samples[0].value for one in text_string_to_metric_families(text)}
    assert (values["almanac_database_up"], values["almanac_task_failing"]) == (0, 0)


def test_the_description_lists_every_path_with_its_parameters(client: Client) -> None:
    code, text = client.get("/openapi.json", token=None)
    document = json.loads(text)
    assert code == 200
    assert document["openapi"].startswith("3.")
    assert set(document["paths"]) == {*QUESTIONS, "/metrics", "/healthz"}
    schemes = document["components"]["securitySchemes"]
    for path, operations in document["paths"].items():
        assert set(operations) == {"get"}
        operation = operations["get"]
        assert operation["summary"]
        assert operation["description"]
        assert ("security" in operation) == (path != "/healthz")
        for entry in operation.get("security", []):
            assert set(entry) <= set(schemes)
        assert list(operation["responses"]["200"]["content"]) == [
            "text/plain" if path == "/metrics" else "application/json"
        ]
        if path != "/healthz":
            assert {"200", "4XX", "503"} <= set(operation["responses"])
        in_path = {one["name"] for one in operation.get("parameters", []) if one["in"] == "path"}
        assert in_path == {word[1:-1] for word in path.split("/") if word.startswith("{")}
    for reference in set(_references(document)):
        found = document
        for key in reference.removeprefix("#/").split("/"):
            found = found[key]
    identities = [one["get"]["operationId"] for one in document["paths"].values()]
    assert len(set(identities)) == len(identities)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref":
                yield item
            else:
                yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        listen("no.such.name.invalid", 0)


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
KEYS = {"error", "path", "line", "text", "reason"}


class Away:
    """A service without a database."""

    def __init__(self, spool: Spool) -> None:
        self.spool, self.away, self.states = spool, "refused", SimpleNamespace(all=dict)

    def registry(self) -> Any:
        raise DatabaseUnavailable("bolt://x", "refused", "wait")

    def check_soon(self) -> None:
        pass


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    with answering(Away(Spool(tmp_path / "spool", 1_000_000)), ("localhost", "fabric.example")) as number:
        yield number


def opened(port: int, sent: bytes) -> socket.socket:
    one = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    one.sendall(sent)
    return one


def answer(port: int, sent: bytes) -> tuple[int, dict[str, Any]]:
    with opened(port, sent) as one:
        return received(one)


def received(one: socket.socket) -> tuple[int, dict[str, Any]]:
    """Return status and document of the answer that a connection gets."""
    with one.makefile("rb") as file:
        status = int(file.readline().split()[1])
        headers = dict(line.lower().split(b": ", 1) for line in iter(file.readline, b"\r\n"))
        assert headers[b"content-type"].strip() == b"application/json"
        return status, json.loads(file.read(int(headers[b"content-length"])))


def test_others_are_answered_beside_many_that_send_half_a_header(port: int) -> None:
    with ExitStack() as stack:
        for _ in range(150):
            stack.enter_context(opened(port, b"GET /clusters HTTP/1.1\r\nHost: local"))
        assert answer(port, HEALTH)[1]["status"] == "database away"
        asked = (
            HEALTH.replace(b"healthz", b"metrics")[:-2] + f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        with opened(port, asked) as one:
            assert one.recv(100).startswith(b"HTTP/1.1 200 ")


def test_half_a_header_ends_after_a_time(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    with opened(port, HEALTH[:20]) as one:
        assert ended(one)
    with opened(port, HEALTH) as one:
        assert received(one)[0] == 503
        one.sendall(HEALTH[:-5])
        assert ended(one)


def ended(one: socket.socket) -> bool:
    try:
        return one.recv(1) == b""
    except ConnectionError:
        return True


def test_the_connection_that_has_waited_longest_goes_if_there_are_too_many(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    with ExitStack() as stack:
        first, *_ = [stack.enter_context(opened(port, HEALTH[:20])) for _ in range(4)]
        assert ended(first)
        assert answer(port, HEALTH)[0] == 503


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000000\r\n\r\n", 413),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
        (b"POST /clusters HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx", 413),
        (b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"no request\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000, 400),
    ],
)
def test_what_is_refused_is_answered_as_json_and_closed(port: int, sent: bytes, status: int) -> None:
    with opened(port, sent) as one:
        found, document = received(one)
        assert (found, set(document)) == (status, KEYS)
        assert ended(one)


@pytest.mark.parametrize("host", [b"[::1]:8600", b"FABRIC.example."])
def test_this_machine_is_reached_by_its_names_and_addresses(port: int, host: bytes) -> None:
    assert answer(port, b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")[0] == 503
    assert answer(port, b"GET /healthz HTTP/1.0\r\n\r\n")[1]["status"] == "database away"


def test_too_many_requests_are_refused_but_health_and_metrics(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_REQUESTS", 0)
    status, document = answer(port, b"GET /clusters HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (status, document["error"]) == (503, "Busy")
    assert answer(port, HEALTH)[1]["status"] == "database away"
