"""Limits of the service's connections: of their number, of the time of a request, and of what it may hold.

Nobody who opens connections and sends nothing, half a header, or a body keeps others from an answer: a
request must be complete within seconds, and of too many connections the one that has waited longest goes.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection
from typing import Any

import h11
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from almanac.allowed_hosts import is_allowed

HEADER_SECONDS = 10.0
"""Longest time from the opening of a connection, or from the first byte of a further request, to its end."""
SEND_SECONDS = 60.0
"""Longest time for which a client may not read what was sent to it."""
MOST_CONNECTIONS = 400
"""Largest number of open connections; less than the usual limit of open files."""
MOST_REQUESTS = 100
"""Largest number of requests at the same time; health and metrics are answered beyond it."""
ALWAYS = frozenset({"/healthz", "/metrics"})

Answer = Callable[[int, str, str], Response]
"""Makes the answer to a refused request from HTTP status, kind of error, and reason."""


class Connection(H11Protocol):
    """A connection whose requests must be complete in time; answers what is no request with `refuse`."""

    refuse: Answer

    _numbers = itertools.count()
    _number = 0
    _waiting: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > MOST_CONNECTIONS:
            idle = [one for one in self.connections if isinstance(one, Connection) and one._waiting]
            oldest = min(idle, key=lambda one: one._number, default=None)
            if oldest is not None:
                oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_sending()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before or self.transport.is_closing():
            self._stop_waiting()
        elif self._waiting is None and self.conn.their_state is h11.IDLE and self._has_begun():
            self._wait()

    def send_400_response(self, msg: str) -> None:
        answer = self.refuse(400, "HTTPError", "this is no request of HTTP/1.1")
        headers = [*answer.raw_headers, (b"connection", b"close")]
        start = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
        for event in (start, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._sending = self.loop.call_later(SEND_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_sending()

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _stop_sending(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _has_begun(self) -> bool:
        return bool(self.conn.trailing_data[0])

    def _wait(self) -> None:
        self._number = next(self._numbers)  # the loop's clock is too coarse for an order
        self._waiting = self.loop.call_later(HEADER_SECONDS, self.transport.abort)


def limited_connection(refuse: Answer) -> type[Connection]:
    """Return the class of connections for a server, which answers what is no request with `refuse`."""
    return type("Limited", (Connection,), {"refuse": staticmethod(refuse)})


class Gate:
    """Application before the API: refuses requests with a body or for another host, and too many of them."""

    def __init__(self, app: ASGIApp, refuse: Answer, hosts: Collection[str]) -> None:
        self.app, self.refuse, self.hosts = app, refuse, hosts
        self.requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            refusal.headers["connection"] = "close"
            await refusal(scope, receive, send)
            return
        self.requests += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.requests -= 1

    def _refusal(self, scope: dict[str, Any] | Scope) -> Response | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host")
        if host is not None and not is_allowed(host, self.hosts):
            reason = f"{host[:100]!r} is no name of this machine: the setting allowed_hosts takes more"
            return self.refuse(400, "HTTPError", reason)
        if b"transfer-encoding" in headers or headers.get(b"content-length", "0").strip("0"):
            return self.refuse(413, "HTTPError", "a request of this service has no body")
        if self.requests >= MOST_REQUESTS and scope["path"] not in ALWAYS:
            return self.refuse(503, "Busy", f"{self.requests} requests are being answered: ask again later")
        return None
