"""Work in a child process with a time limit, so that nothing that happens in it harms this process."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from almanac.running.call import Unplaced
from registry.database.supervisor import die_with_parent
from registry.errors import AlmanacError

T = TypeVar("T")


def answer_within(seconds: float, work: Callable[[], T]) -> T:
    """Return the result of a function that runs in a child process, which is killed if it takes too long.

    Raises
    ------
    Unplaced
        It raised an error, ended without a result, or took longer.
    """
    own_end, child_end = os.pipe()
    ends_with_us = die_with_parent() if sys.platform == "linux" else None
    child = os.fork()
    if child == 0:
        os.close(own_end)
        if ends_with_us is not None:
            ends_with_us()
        _silence()
        _answer(child_end, work)
    os.close(child_end)
    try:
        answer = _read(own_end, time.monotonic() + seconds)
    finally:
        os.close(own_end)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if answer is None:
        raise Unplaced(f"no answer within {seconds:g} s")
    return _result(answer)  # type: ignore[no-any-return]


class PreparedChild:
    """A child process that gets ready while this one finds out what to ask; a context manager.

    It is in a session of its own, and no child of the launcher that this process becomes. If nobody asks, it
    ends.
    """

    def __init__(self, prepare: Callable[[], object]) -> None:
        """Start it with what it does first, such as imports; if that fails, the work will say why."""
        self._began = time.monotonic()
        self._answers, answers = os.pipe()
        asked, asks = os.pipe()
        self._group = os.fork()
        if self._group == 0:
            try:
                os.setsid()
                if os.fork() == 0:
                    os.close(self._answers)
                    os.close(asks)
                    _serve(asked, answers, prepare)
            finally:
                os._exit(0)
        os.close(asked)
        os.close(answers)
        os.waitpid(self._group, 0)
        self._asks = open(asks, "wb")  # noqa: SIM115  # closed by __exit__

    def __enter__(self) -> Self:
        """Return the child."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ask nothing more, and wait for no answer."""
        self._asks.close()
        os.close(self._answers)

    def answer(self, seconds: float, work: Callable[[], T], goes_on: float) -> T:
        """Return the result of a function, which can be pickled; call this once.

        Parameters
        ----------
        seconds : float
            Longest time since the child was started.
        goes_on : float
            How many seconds longer the child may work at the lowest priority, for what it stores.

        Raises
        ------
        Unplaced
            The work raised an error, ended without a result, or took longer.
        """
        with contextlib.suppress(BrokenPipeError), self._asks:
            self._asks.write(pickle.dumps((seconds + goes_on, work)))
        answer = _read(self._answers, self._began + seconds)
        if answer is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.setpriority(os.PRIO_PGRP, self._group, 19)
            then = "the work goes on, and the next run uses what it finds"
            raise Unplaced(f"no answer within {seconds:g} s; {then}")
        return _result(answer)  # type: ignore[no-any-return]


def _serve(asked: int, answers: int, prepare: Callable[[], object]) -> None:
    """Get ready, wait for what is asked, answer it, and end this process."""
    _silence()
    gc.disable()  # it would visit all modules again and again while they are imported
    with contextlib.suppress(BaseException):
        prepare()
    with open(asked, "rb") as file:
        question = file.read()
    if not question:
        return
    gc.freeze()
    gc.enable()
    seconds, work = pickle.loads(question)  # noqa: S301  # written by our own parent
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    _answer(answers, work)


def _silence() -> None:
    """Close the standard streams of this process."""
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)


def _answer(end: int, work: Callable[[], object]) -> NoReturn:
    """Run the work, write its result or error to a pipe, and end this process."""
    answer: tuple[bool, object]
    try:
        answer = (True, work())
    except AlmanacError as error:
        answer = (False, str(error))
    except BaseException as error:
        answer = (False, f"{type(error).__name__}: {error}")
    try:
        with open(end, "wb") as file:
            file.write(pickle.dumps(answer))
    finally:  # also if nobody waits for it any more: this process must not go on as its parent
        os._exit(0)


def _read(end: int, deadline: float) -> bytes | None:
    """Return what comes out of a pipe until its end, or None if that takes too long."""
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([end], [], [], max(deadline - time.monotonic(), 0.0))
        if not ready:
            return None
        part = os.read(end, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _result(answer: bytes) -> Any:
    """Return the result that a child wrote; raises `Unplaced` if it wrote an error or nothing."""
    if not answer:
        raise Unplaced("the work ended unexpectedly")
    good, result = pickle.loads(answer)  # noqa: S301  # written by our own child
    if not good:
        raise Unplaced(result)
    return result
