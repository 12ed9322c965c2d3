"""The HTTP API: read-only JSON, metrics and health, with a token and an OpenAPI description.

Answers are computed in worker threads. Errors are JSON with the keys of the command line's errors.

Limits of the service's connections: of their number, of the time of a request, and of what it may hold.

Nobody who opens connections and sends nothing, half a header, or a body keeps others from an answer: a
request must be complete within seconds, and of too many connections the one that has waited longest goes.

Questions that the HTTP API answers, each with the JSON document of a command; all only read.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import anyio.to_thread
import h11
import uvicorn
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, BeforeValidator
from starlette.exceptions import HTTPException as StarletteError
from starlette.responses import Response as H11Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from almanac.options import DAY, is_rare, require_cluster, require_names
from almanac.output.circuits import circuit_plan_info_to_json
from almanac.output.placements import regression_to_json, simulation_info_to_json, stored_placement_to_json
from almanac.output.printing import json_text
from almanac.output.running_jobs import (
    congestion_to_json,
    ports_to_json,
    stored_advice_to_json,
    today_to_json,
)
from almanac.output.stored_data import (
    changes_to_json,
    cluster_to_json,
    findings_to_json,
    host_layout_to_json,
    job_to_json,
    profile_info_to_json,
    profile_to_json,
    snapshot_to_json,
)
from almanac.prometheus import Gauges, read_gauges
from almanac.serve.allowed_hosts import LOCAL, is_allowed
from almanac.serve.service import Service
from mapping.checks.checks import check
from mapping.checks.finding import ErrorLimits
from mapping.distances.cost_model import CostModel
from mapping.questions.live import read_ports, traffic
from mapping.questions.place import subject_of
from mapping.questions.today import read_today
from mapping.routing.catalog import choose_routing
from mapping.traffic.job_loads import regressions
from registry.errors import AlmanacError, ConfigError, DatabaseError, InvalidValue, UnknownName
from registry.registry import Registry
from registry.units import MOMENTS, code_version, moment_of

if TYPE_CHECKING:
    from almanac.serve.service import TaskState
    from almanac.spool import Spool

HEADER_SECONDS = 10.0
"""Longest time from the opening of a connection, or from the first byte of a further request, to its end."""
SEND_SECONDS = 60.0
"""Longest time for which a client may not read what was sent to it."""
MOST_CONNECTIONS = 400
"""Largest number of open connections; less than the usual limit of open files."""
MOST_REQUESTS = 100
"""Largest number of requests at the same time; health and metrics are answered beyond it."""
ALWAYS = frozenset({"/healthz", "/metrics"})

Answer = Callable[[int, str, str], H11Response]
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

    def _refusal(self, scope: dict[str, Any] | Scope) -> H11Response | None:
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


LONGEST_NAME = 200


def opened(request: Request) -> Registry:
    """Return the open registry of the service."""
    registry = request.app.state.service.registry()
    assert isinstance(registry, Registry)
    return registry


def error_limits(request: Request) -> ErrorLimits:
    """Return the limits of the settings from which growing errors are reported."""
    limits = request.app.state.service.limits
    assert isinstance(limits, ErrorLimits)
    return limits


def _moment(text: object) -> object:
    """Return the time that a text of a query means, as for options of the command line."""
    try:
        return moment_of(text, datetime.now(UTC)) if isinstance(text, str) else text
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time such as {MOMENTS}") from error


Opened = Annotated[Registry, Depends(opened)]
Limits = Annotated[ErrorLimits, Depends(error_limits)]
ClusterName = Annotated[str, Path(max_length=LONGEST_NAME, description="Name of the cluster.")]
OfCluster = Annotated[str | None, Query(max_length=LONGEST_NAME, description="Only of this cluster.")]
Moment = Annotated[
    datetime | None,
    BeforeValidator(_moment),
    Query(description=f"A time such as {MOMENTS}; UTC if it has no zone (default: now)."),
]
Top = Annotated[int, Query(ge=1, le=1000, description="Maximum number of rows.")]
Limit = Annotated[int, Query(ge=1, le=10_000, description="Maximum number of rows, the newest.")]
Name = Annotated[str | None, Query(max_length=LONGEST_NAME)]


def clusters(registry: Opened) -> Any:
    """All clusters: `almanac cluster list`."""
    return [cluster_to_json(info) for info in registry.fabrics.clusters()]


def cluster(registry: Opened, cluster: ClusterName, at: Moment = None) -> Any:
    """Size and routing of a cluster's fabric: `almanac cluster show`."""
    snapshot = registry.fabrics.read(cluster, at)
    return snapshot_to_json(cluster, snapshot, *choose_routing(snapshot.fabric))


def changes(registry: Opened, cluster: ClusterName, start: Moment = None, end: Moment = None) -> Any:
    """What changed between two times, or in the last change: `almanac cluster changes`."""
    first = registry.fabrics.before_last_change(cluster, end) if start is None else start
    return changes_to_json(cluster, registry.fabrics.changes(cluster, first, end))


def checks(registry: Opened, limits: Limits, cluster: ClusterName, at: Moment = None) -> Any:
    """Problems of a cluster's fabric: `almanac cluster check`."""
    found = check(subject_of(registry, cluster, at, limits))
    return {"cluster": cluster, "findings": findings_to_json(found)}


def layouts(registry: Opened, cluster: ClusterName, at: Moment = None) -> Any:
    """Host layouts of a cluster: `almanac cluster layouts`."""
    require_cluster(registry, cluster)
    return [host_layout_to_json(one) for one in registry.layouts.list(cluster, at)]


def congestion(
    registry: Opened,
    cluster: ClusterName,
    at: Moment = None,
    top: Top = 20,
    network: Annotated[bool, Query(description="Only links between switches.")] = False,
) -> Any:
    """Busiest links and the jobs that load them: `almanac congestion`."""
    live = traffic(registry, cluster, at, CostModel())
    return congestion_to_json(live, live.shared.hottest(top, network_only=network), None, top)


def ports(
    registry: Opened,
    limits: Limits,
    cluster: ClusterName,
    since: Moment = None,
    at: Moment = None,
    top: Top = 15,
) -> Any:
    """Errors, utilisation and jobs of the ports: `almanac ports`."""
    live = traffic(registry, cluster, at, CostModel())
    return ports_to_json(live, read_ports(registry, live, limits, since), top)


def today(registry: Opened, limits: Limits, cluster: ClusterName, since: Moment = None) -> Any:
    """Changes, problems, slowed jobs and the best action: `almanac today`."""
    start = datetime.now(UTC) - DAY if since is None else since
    return today_to_json(read_today(registry, cluster, start, limits=limits, is_rare=is_rare))


def advice(registry: Opened, cluster: ClusterName) -> Any:
    """Saved advice for the running jobs, the largest gain first: rows of `almanac advise jobs`."""
    require_cluster(registry, cluster)
    stored = registry.advices.list(cluster, running_at=datetime.now(UTC))
    return {"cluster": cluster, "jobs": [stored_advice_to_json(one) for one in stored]}


def jobs(registry: Opened, cluster: OfCluster = None, limit: Limit = 100) -> Any:
    """Jobs, the newest first: `almanac job list`."""
    require_cluster(registry, cluster)
    return [job_to_json(stored) for stored in registry.jobs.list(cluster)[:limit]]


def job(
    registry: Opened, job: Annotated[str, Path(max_length=LONGEST_NAME)], cluster: OfCluster = None
) -> Any:
    """One job: `almanac job show`."""
    stored = registry.jobs.read(job, cluster)
    return job_to_json(stored) | {"unknown_hosts": list(registry.jobs.unknown_hosts(stored))}


def profiles(registry: Opened) -> Any:
    """All profiles: `almanac profile list`."""
    return [profile_info_to_json(info) for info in registry.profiles.list()]


def profile(registry: Opened, profile: Annotated[str, Path(max_length=LONGEST_NAME)]) -> Any:
    """One profile, by name or id: `almanac profile show`."""
    stored = registry.profiles.read(profile)
    return profile_to_json(stored, [trace.id for trace in registry.traces.list(stored.id)])


def placements(
    registry: Opened,
    cluster: OfCluster = None,
    application: Name = None,
    job: Name = None,
    limit: Limit = 100,
) -> Any:
    """Placements with bounds and baselines, the newest first: `almanac history placements`."""
    require_names(registry, cluster, application, job)
    infos = registry.placements.history(cluster, application, job, limit=limit)
    return [stored_placement_to_json(info) for info in infos]


def placements_that_got_worse(
    registry: Opened, cluster: OfCluster = None, application: Name = None, limit: Limit = 100
) -> Any:
    """Placements above their control limit, the newest first: `almanac history regressions`."""
    require_names(registry, cluster, application, None)
    series = registry.placements.series(cluster=cluster, application=application)
    return [regression_to_json(one) for one in regressions(series)[:limit]]


def simulations(registry: Opened, cluster: OfCluster = None, limit: Limit = 100) -> Any:
    """Simulated runs, the newest first: `almanac history simulations`."""
    require_cluster(registry, cluster)
    return [simulation_info_to_json(info) for info in registry.simulations.list(cluster, limit=limit)]


def circuit_plans(registry: Opened, cluster: OfCluster = None, limit: Limit = 100) -> Any:
    """Circuit plans, the newest first: `almanac history circuits`."""
    require_cluster(registry, cluster)
    return [circuit_plan_info_to_json(info) for info in registry.circuit_plans.list(cluster, limit=limit)]


QUESTIONS: dict[str, Callable[..., Any]] = {
    "/clusters": clusters,
    "/clusters/{cluster}": cluster,
    "/clusters/{cluster}/changes": changes,
    "/clusters/{cluster}/checks": checks,
    "/clusters/{cluster}/layouts": layouts,
    "/clusters/{cluster}/congestion": congestion,
    "/clusters/{cluster}/ports": ports,
    "/clusters/{cluster}/today": today,
    "/clusters/{cluster}/advice": advice,
    "/jobs": jobs,
    "/jobs/{job}": job,
    "/profiles": profiles,
    "/profiles/{profile}": profile,
    "/placements": placements,
    "/placements/regressions": placements_that_got_worse,
    "/simulations": simulations,
    "/circuit-plans": circuit_plans,
}
"""Path of each question and the function that answers it."""


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

    Args:
        hosts: Names of this machine that requests may carry.
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

    Raises:
        ConfigError: The address is wrong or in use.
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


def health_to_json(away: str | None, states: Mapping[str, TaskState], spool: Spool) -> dict[str, Any]:
    """Return the document of ``/healthz``.

    Args:
        away: Why the database cannot be used; None if it can.
    """
    now, waiting = datetime.now(UTC), spool.waiting()
    return {
        "status": "ok" if away is None else "database away",
        "spool": {
            "waiting": len(waiting),
            "rejected": len(spool.rejected()),
            "oldest_age_seconds": now.timestamp() - int(waiting[0].name) / 1e9 if waiting else None,
        },
        "tasks": [
            {
                "task": name,
                "started_at": state.started_at,
                "succeeded_at": state.succeeded_at,
                "age_seconds": None
                if state.succeeded_at is None
                else (now - state.succeeded_at).total_seconds(),
                "failed_at": state.failed_at,
                "failing": state.error != "",
            }
            for name, state in states.items()
        ],
    }
