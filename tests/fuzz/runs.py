"""Workers one after the other, each in a process of its own, and what became of them."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection

from tests.fuzz.cases import Case, keep, name_of
from tests.fuzz.worker import Failure, Outcome, Task, work

PATIENCE = 900
"""Wall-clock seconds beyond its own time after which a worker that uses none is taken to wait for ever."""


def run(tasks: Iterable[Task]) -> Iterator[Outcome]:
    """The outcomes of tasks, each as it comes; `LookupError` for a format without a sample."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process that forks has one thread
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.fuzz.preload"])
    for task in tasks:
        task.folder.mkdir(parents=True, exist_ok=True)
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_worker, args=(task, sender), daemon=True)
        process.start()
        sender.close()
        try:
            outcome = receiver.recv() if receiver.poll(task.seconds + PATIENCE) else None
        except EOFError:
            outcome = None
        if outcome is None:
            process.kill()
        process.join()
        receiver.close()
        if isinstance(outcome, LookupError):
            raise outcome
        yield outcome if isinstance(outcome, Outcome) else _lost(task, process.exitcode)


def _worker(task: Task, sender: Connection) -> None:
    try:
        outcome: Outcome | LookupError = work(task)
    except LookupError as error:
        outcome = error
    sender.send(outcome)


def _lost(task: Task, status: int | None) -> Outcome:
    """The outcome of a worker that is gone: the case that it was at is what ended it."""
    if not task.current.exists():
        raise RuntimeError(f"a worker for {task.format} ended with status {status} before its first case")
    case: Case = pickle.loads(task.current.read_bytes())
    place = task.folder / name_of(case)
    keep(case, place, "it ended the process")
    what = "the process waited for ever" if status is None else f"the process ended with status {status}"
    return Outcome(task.format, 0, 0, 0, (Failure(what, place),))
