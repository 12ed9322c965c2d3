"""Clients that keep connections busy, name another host, or send what nobody asked for."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, cast

import pytest

from almanac.service import api, connections
from almanac.service.service import Service
from almanac.service.spool import Spool
from registry.errors import DatabaseUnavailable
from tests.support.waiting import PATIENCE, comes_true

TOKEN = "0123456789abcdef"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
KEYS = {"error", "path", "line", "text", "reason"}


class Away:
    """A service without a database."""

    def __init__(self, spool: Spool) -> None:
        self.spool, self.away = spool, "refused"
        self.states = SimpleNamespace(all=dict)
        self.released = threading.Event()

    def registry(self) -> Any:
        raise DatabaseUnavailable("bolt://x", "refused", "wait")

    def check_soon(self) -> None:
        pass


@pytest.fixture
def port(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    service = Away(Spool(tmp_path / "spool", 1_000_000))
    running = api.server(api.build(cast(Service, service), TOKEN, ("localhost", "fabric.example")))
    with api.listen("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=running.run, args=([listener],))
        thread.start()
        assert comes_true(lambda: running.started)
        yield listener.getsockname()[1]
        running.should_exit = True
        thread.join()


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


def test_others_are_answered_beside_many_that_send_half_a_header(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        for _ in range(150):
            stack.enter_context(opened(port, b"GET /clusters HTTP/1.1\r\nHost: local"))
        assert answer(port, HEALTH)[1]["status"] == "database away"
        asked = (
            b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n\r\n" % TOKEN.encode()
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
        (b"GET /healthz HTTP/1.1\r\nHost: localhost.evil.example:8600\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost@evil.example\r\n\r\n", 400),
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


@pytest.mark.parametrize(
    "host", [b"localhost:1", b"127.0.0.1", b"[::1]:8600", b"FABRIC.example.", b"10.0.0.7"]
)
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
