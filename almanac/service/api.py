"""The HTTP API: read-only JSON, metrics and health, with a token and an OpenAPI description.

Answers are computed in worker threads. Errors are JSON with the keys of the command line's errors.
"""

from __future__ import annotations

import hmac
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import wraps
from typing import Annotated, Any

import anyio
import anyio.to_thread
import uvicorn
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel
from starlette.exceptions import HTTPException as StarletteError

from almanac.allowed_hosts import LOCAL
from almanac.output.json.service import health_to_json
from almanac.output.printing import json_text
from almanac.prometheus import Gauges, read_gauges
from almanac.service.connections import Gate, limited_connection
from almanac.service.questions import QUESTIONS
from almanac.service.service import Service
from registry.errors import AlmanacError, ConfigError, DatabaseError, InvalidValue, UnknownName
from registry.units import code_version

WORKERS = 8
"""Questions that are answered at the same time; the others wait."""
METRICS_WORKERS = 2
GAUGES_SECONDS = 15.0
"""How long the gauges that need the database are reused: several collectors may ask for them."""
CLOSE_SECONDS = 5
"""Longest wait for the last answers when the service stops."""
_BEARER = HTTPBearer(auto_error=False, description="The token of the service's token file.")


class Problem(BaseModel):
    """An error, as ``--json`` prints it on standard error."""

    error: str
    path: str | None = None
    line: int | None = None
    text: str | None = None
    reason: str


def build(service: Service, token: str, hosts: Collection[str] = LOCAL) -> FastAPI:
    """Return the application that answers requests about the registry of a service.

    Parameters
    ----------
    hosts : collection of str
        Names of this machine that requests may carry.
    """

    def require_token(given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]) -> None:
        sent = "" if given is None else given.credentials
        if not hmac.compare_digest(sent.encode("utf-8", "replace"), token.encode("utf-8")):
            raise HTTPException(401, "a valid token is missing", {"WWW-Authenticate": "Bearer"})

    app = FastAPI(
        title="Fabric Almanac",
        version=code_version(),
        description="Read-only answers from the registry; the documents of the commands' `--json`.",
        docs_url=None,
        redoc_url=None,
        lifespan=_limit_workers,
    )
    app.state.service = service
    failures: dict[int | str, dict[str, Any]] = {"4XX": {"model": Problem}, 503: {"model": Problem}}
    router = APIRouter(dependencies=[Depends(require_token)], responses=failures)
    for path, answer in QUESTIONS.items():
        router.add_api_route(path, _as_json(answer), response_model=None)
    router.add_api_route("/metrics", _Metrics(service).answer, response_class=PlainTextResponse)
    app.include_router(router)
    app.add_api_route("/healthz", _healthz(service), response_model=None)
    app.add_exception_handler(AlmanacError, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(StarletteError, _answer_refusal)
    app.add_exception_handler(Exception, _answer_fault)
    app.add_middleware(Gate, refuse=_problem, hosts=hosts)
    return app


def listen(address: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises
    ------
    ConfigError
        The address is wrong or in use.
    """
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family)
    except OSError as error:
        why = str(error.strerror).partition(" (while")[0]
        raise ConfigError("serve.port", f"{address}:{port} cannot be used: {why}") from error


def server(app: FastAPI) -> uvicorn.Server:
    """Return a server for an application; its `run` returns after SIGTERM or SIGINT."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=CLOSE_SECONDS,
            http=limited_connection(_problem),
            ws="none",
        )
    )


@asynccontextmanager
async def _limit_workers(app: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = WORKERS
    yield


def _as_json(answer: Callable[..., Any]) -> Callable[..., Response]:
    """Return an endpoint that writes an answer as the command line does."""

    @wraps(answer)
    def endpoint(**parameters: Any) -> Response:
        return _json(200, answer(**parameters))

    return endpoint


def _json(status: int, value: Any, headers: dict[str, str] | None = None) -> Response:
    return Response(json_text(value) + "\n", status, headers, "application/json")


def _problem(
    status: int, error: str, reason: str, headers: dict[str, str] | None = None, **where: Any
) -> Response:
    return _json(status, Problem(error=error, reason=reason, **where).model_dump(), headers)


def _healthz(service: Service) -> Callable[[], Any]:
    async def healthz() -> Response:
        """State of the database, the spool and each task; needs no token."""
        document = health_to_json(service.away, service.states.all(), service.spool)
        return _json(200 if service.away is None else 503, document)

    return healthz


class _Metrics:
    """Gauges for Prometheus; those of the database are reused for a while."""

    def __init__(self, service: Service) -> None:
        self._service, self._lock = service, threading.Lock()
        self._text, self._until = "", 0.0
        self._workers: anyio.CapacityLimiter | None = None

    async def answer(self) -> Response:
        """Gauges of `almanac metrics`, and those of the service; also while the database is away."""
        if self._workers is None:  # its own, since questions may take all others
            self._workers = anyio.CapacityLimiter(METRICS_WORKERS)
        return await anyio.to_thread.run_sync(self._answer, limiter=self._workers)

    def _answer(self) -> Response:
        service, text = self._service, ""
        with self._lock:
            try:
                registry = service.registry()
                if time.monotonic() > self._until:
                    self._text = read_gauges(registry, limits=service.limits).text()
                    self._until = time.monotonic() + GAUGES_SECONDS
                text = self._text
            except DatabaseError:
                service.check_soon()
        return PlainTextResponse(
            text + service_gauges(service, bool(text)), media_type="text/plain; version=0.0.4"
        )


def service_gauges(service: Service, is_database_up: bool) -> str:
    """Return the gauges of the service itself."""
    gauges = Gauges()
    gauges.add("almanac_database_up", float(is_database_up))
    document = health_to_json(service.away, service.states.all(), service.spool)
    for key in ("waiting", "rejected"):
        gauges.add("almanac_spool_entries", document["spool"][key], state=key)
    gauges.add("almanac_spool_oldest_age_seconds", document["spool"]["oldest_age_seconds"] or 0.0)
    for task in document["tasks"]:
        if task["age_seconds"] is not None:
            gauges.add("almanac_task_age_seconds", task["age_seconds"], task=task["task"])
        gauges.add("almanac_task_failing", float(task["failing"]), task=task["task"])
    return gauges.text()


async def _answer_error(request: Request, error: Exception) -> Response:
    """Answer an error of the program: unknown name 404, database away 503, other 400."""
    assert isinstance(error, AlmanacError)
    status = 404 if isinstance(error, UnknownName) else 400
    if isinstance(error, DatabaseError):
        status = 503
        request.app.state.service.check_soon()
    reason = error.named() if isinstance(error, InvalidValue) else error.reason
    return _problem(status, type(error).__name__, reason, path=error.path, line=error.line, text=error.text)


async def _answer_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return _problem(400, "UsageError", f"{first['loc'][-1]}: {first['msg']}")


async def _answer_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteError)
    headers = dict(error.headers or {})
    return _problem(error.status_code, "HTTPError", str(error.detail), headers)


async def _answer_fault(request: Request, error: Exception) -> Response:
    return _problem(500, type(error).__name__, "a fault of the program; its log says where")
