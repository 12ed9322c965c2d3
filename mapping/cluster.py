"""Run functions on the machines of a Dask cluster, each call as one task on one worker.

Arguments are pickled here and unpickled by the worker; large ones that several tasks need are sent once
(`Cluster.share`). At a stop each task gets a KeyboardInterrupt, as if Ctrl-C had been pressed on its machine,
so that a search returns its best result so far. A task whose worker dies runs again on another worker, as
often as the scheduler's setting ``distributed.scheduler.allowed-failures`` allows.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import pickle
import platform
import re
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from registry.errors import ClusterError
from registry.installation import require
from registry.progress import Progress, silent
from registry.units import code_version

if TYPE_CHECKING:
    from distributed import Client

ADDRESS = re.compile(r"(tcp|tls)://.+:\d+")
CONNECT_SECONDS = 5.0
"""Seconds to wait for the scheduler, and for the first of its workers."""
TICK = 0.1
"""Seconds between two reports of progress."""
POLL = 0.5
"""Seconds between two questions of a worker whether its task must stop."""
PATIENCE = 5.0
"""Seconds that tasks have after a stop to return what they found."""
REPORT_SECONDS = 0.5
"""Least seconds between two reports of a task."""
PACKAGES = ("numpy", "numba")
"""Packages whose versions decide on results."""


class TaskStopped(Exception):
    """A task was stopped before it had a result."""


@dataclass(slots=True, eq=False)
class Cluster:
    """A connection to a Dask cluster; ``submit`` runs a function on one of its workers."""

    address: str
    """Address of the scheduler."""
    machines: int
    """Number of workers when the connection was made."""
    threads: int
    """Number of tasks that they run at a time: threads of all workers."""
    _client: Client
    stopped: bool = False
    """True after `stop`."""
    _name: str = field(default_factory=lambda: f"almanac-{uuid.uuid4().hex}")
    _shared: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def share(self, value: Any) -> None:
        """Send a value to each worker once; arguments of tasks that contain this object then refer to it.

        The scheduler keeps it, so that it survives the death of all workers.
        """
        import dask

        if id(value) not in self._shared:
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
                data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
                sent = self._client.submit(pickle.loads, data, pure=False)
            self._client.replicate([sent])  # else tasks would be queued where it is
            self._shared[id(value)] = value, sent

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Run a function with these arguments on a worker."""
        work = io.BytesIO()
        pickler = _Pickler(work, self._shared)
        pickler.dump((fn, args))
        executor = self._client.get_executor(pure=False)
        found: Future[Any] = executor.submit(_run, work.getvalue(), self._name, list(pickler.used.values()))
        return found

    def stop(self) -> None:
        """Stop all tasks; each returns what it has found so far."""
        from distributed import Event

        self.stopped = True
        Event(self._name, client=self._client).set()

    def run(
        self,
        fn: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        phase: str,
        progress: Progress = silent,
    ) -> Iterator[tuple[int, Future[Any]]]:
        """Run a function with each tuple of arguments; yield the number and the result of each as it ends.

        After Ctrl-C the tasks are stopped, and those that return something within `PATIENCE` are yielded;
        unless these are all, KeyboardInterrupt is raised then.
        """
        numbers = {self.submit(fn, *task): number for number, task in enumerate(tasks)}
        waiting = set(numbers)
        try:
            while waiting:
                progress(phase, len(numbers) - len(waiting), len(numbers))
                ended, waiting = wait(waiting, TICK, FIRST_COMPLETED)
                yield from ((numbers[one], one) for one in sorted(ended, key=lambda one: numbers[one]))
        except KeyboardInterrupt:
            self.stop()
            found = [
                one for one in wait(waiting, PATIENCE).done if not isinstance(one.exception(), TaskStopped)
            ]
            yield from ((numbers[one], one) for one in sorted(found, key=lambda one: numbers[one]))
            if len(found) < len(waiting):
                raise
        progress(phase, len(numbers), len(numbers))

    def listen(self, receive: Callable[..., None]) -> RemoteReport:
        """Return a function for tasks that calls `receive` here, though not each time that it is called."""
        self._client.subscribe_topic(self._name, lambda event: receive(*event[1]))
        return RemoteReport(self._name)


@dataclass(slots=True)
class RemoteReport:
    """Function of a task that reports progress: a phase, proposals since the last call, metric and value."""

    topic: str
    _taken: int = 0
    _next: float = 0.0

    def __call__(self, phase: str, taken: int, metric: str | None, value: float | None) -> None:
        """Send a report; one with a value only if the last one was not sent a moment ago."""
        from distributed import get_worker

        self._taken += taken
        now = time.monotonic()
        if metric is None or now >= self._next:
            get_worker().log_event(self.topic, (phase, self._taken, metric, value))
            self._taken, self._next = 0, now + REPORT_SECONDS


@contextlib.contextmanager
def open_cluster(address: str) -> Iterator[Cluster]:
    """Connect to the scheduler of a Dask cluster, and end all work there when the block ends.

    Args:
        address: ``tcp://HOST:PORT``, or ``tls://HOST:PORT`` with the certificates of Dask's own
            configuration.

    Raises:
        ClusterError: No scheduler answers, it has no workers, or a worker has another version of this
            program. In the block: the workers that ran a task died, or the connection was lost.
        MissingExtra
    """
    if not ADDRESS.fullmatch(address):
        raise ClusterError(address, "an address is of the form tcp://HOST:PORT or tls://HOST:PORT")
    require("distributed", "distributed")
    from distributed import Client, KilledWorker
    from distributed.comm import CommClosedError

    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="almanac")
    except (OSError, ValueError, RuntimeError) as error:
        cure = "start one with `dask scheduler`, or leave out --scheduler to use this machine alone"
        raise ClusterError(address, f"no scheduler answers ({error}); {cure}") from error
    with client:
        threads = _threads(client, address)
        _check_versions(client, address)
        try:
            yield Cluster(address, len(threads), sum(threads.values()), client)
        except KilledWorker as error:
            raise _killed(address, error) from error
        except (CancelledError, CommClosedError) as error:
            raise ClusterError(address, f"the connection to the scheduler was lost ({error})") from error


def _threads(client: Client, address: str) -> Mapping[str, int]:
    """Return the number of threads of each worker."""
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError as error:
        cure = f"start `dask worker {address}` on each machine, with this program installed"
        raise ClusterError(address, f"the scheduler has no workers; {cure}") from error
    return dict(client.nthreads())


def _check_versions(client: Client, address: str) -> None:
    """Raise if a worker runs other code than this process, as far as it decides on results."""
    mine = _own_code()
    for worker, found in sorted(client.run(installed_code, on_error="return").items()):
        if isinstance(found, BaseException):
            reason = f"worker {worker} cannot run this program ({found}); install it there"
            raise ClusterError(address, reason, worker=worker)
        differ = sorted(name for name in mine.keys() | found.keys() if mine.get(name) != found.get(name))
        if differ:
            name, more = differ[0], f" and {len(differ) - 1} more" if len(differ) > 1 else ""
            has, here = found.get(name, "missing"), mine.get(name, "missing")
            reason = f"worker {worker} has another {name} than this machine ({has}, not {here}){more}"
            raise ClusterError(address, f"{reason}; install the same version there", worker=worker)


def _killed(address: str, error: Any) -> ClusterError:
    """Return the error for a task whose workers died."""
    worker = str(error.last_worker.address)
    return ClusterError(
        address,
        f"{error.allowed_failures + 1} workers died while they ran the same task, the last was {worker}; "
        "its log has the reason (often too little memory)",
        worker=worker,
    )


@cache
def installed_code() -> dict[str, str]:
    """Return the versions of this program and of packages, and a checksum of each module, by name."""
    root = Path(__file__).parents[1]
    files = (path for part in ("mapping", "registry") for path in (root / part).rglob("*.py"))
    modules = {path.relative_to(root).as_posix(): f"{zlib.crc32(path.read_bytes()):08x}" for path in files}
    python = ".".join(platform.python_version_tuple()[:2])
    # capitals first: an error names the first difference
    return {
        "Fabric Almanac": code_version(),
        "Python": python,
        **{name: version(name) for name in PACKAGES},
    } | modules


def _own_code() -> dict[str, str]:
    """Return what `installed_code` returns in this process."""
    return installed_code()


class _Pickler(pickle.Pickler):
    """A pickler that leaves out shared values; `used` has those that were referred to, in order."""

    def __init__(self, file: io.BytesIO, shared: Mapping[int, tuple[Any, Any]]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._known = shared
        self.used: dict[int, Any] = {}

    def persistent_id(self, obj: Any) -> int | None:
        """Return the place of a shared value in `used`; None for any other object."""
        known = self._known.get(id(obj))
        if known is None:
            return None
        self.used.setdefault(id(obj), known[1])
        return list(self.used).index(id(obj))


class _Unpickler(pickle.Unpickler):
    """An unpickler that inserts shared values."""

    def __init__(self, data: bytes, shared: Sequence[Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._known = shared

    def persistent_load(self, pid: int) -> Any:
        """Return a shared value by its place."""
        return self._known[pid]


def _run(work: bytes, name: str, shared: Sequence[Any]) -> Any:
    """Run a task on this worker; a stop of the caller raises KeyboardInterrupt in it."""
    from distributed import Event, get_client, get_worker

    worker, stop = get_worker(), Event(name, client=get_client())
    key = worker.get_current_task()

    def stopped() -> bool:
        task = worker.state.tasks.get(key)
        is_given_up = task is None or task.state == "cancelled"  # the caller ended, or was killed
        return is_given_up or stop.is_set()

    function, arguments = _Unpickler(work, shared).load()
    try:
        with _interrupted_if(stopped):
            return function(*arguments)
    except KeyboardInterrupt:
        raise TaskStopped from None


@contextlib.contextmanager
def _interrupted_if(stopped: Callable[[], bool]) -> Iterator[None]:
    """Raise KeyboardInterrupt in the block if a function, which another thread calls, returns True.

    Again after `PATIENCE` if the block goes on: Python drops an exception that arrives in a finaliser.
    """
    thread = ctypes.c_ulong(threading.get_ident())
    set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
    ended, lock = threading.Event(), threading.Lock()

    def watch() -> None:
        while not ended.wait(POLL):
            with contextlib.suppress(Exception):  # the scheduler does not answer: asked again
                if stopped():
                    with lock:
                        if not ended.is_set():
                            set_exception(thread, ctypes.py_object(KeyboardInterrupt))
                    ended.wait(PATIENCE)

    threading.Thread(target=watch, daemon=True, name="stop").start()
    try:
        yield
    finally:
        with lock:
            ended.set()
        set_exception(thread, None)  # what was raised, but has not arrived
