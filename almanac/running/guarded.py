"""Work in a child process with a time limit, so that nothing that happens in it harms this process."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from almanac.running.call import Unplaced
from registry.database.local.supervisor import die_with_parent
from registry.errors import AlmanacError

T = TypeVar("T")


def answer_within(seconds: float, work: Callable[[], T], *, goes_on: float = 0.0) -> T:
    """Return the result of a function that runs in a child process.

    Parameters
    ----------
    goes_on : float
        How many seconds longer the child may work at the lowest priority if it takes too long, for what it
        stores; 0: it is killed.

    Raises
    ------
    Unplaced
        It raised an error, ended without a result, or took longer.
    """
    own_end, child_end = os.pipe()
    ends_with_us = die_with_parent() if sys.platform == "linux" and not goes_on else None
    child = os.fork()
    if child == 0:
        os.close(own_end)
        if ends_with_us is not None:
            ends_with_us()
        if goes_on:  # in a session of its own, and no child of the launcher that this process becomes
            os.setsid()
            if os.fork():
                os._exit(0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, seconds + goes_on)
        _answer(child_end, work)
    os.close(child_end)
    try:
        answer = _read(own_end, time.monotonic() + seconds)
    finally:
        os.close(own_end)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if goes_on:
                os.setpriority(os.PRIO_PGRP, child, 19)
            else:
                os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if answer is None:
        then = "; the work goes on, and the next run uses what it finds" if goes_on else ""
        raise Unplaced(f"no answer within {seconds:g} s{then}")
    if not answer:
        raise Unplaced("the work ended unexpectedly")
    good, result = pickle.loads(answer)  # noqa: S301  # written by our own child
    if not good:
        raise Unplaced(result)
    return result  # type: ignore[no-any-return]


def _answer(end: int, work: Callable[[], T]) -> None:
    """Run the work, write its result or error to a pipe, and end this process."""
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    try:
        answer = (True, work())
    except AlmanacError as error:
        answer = (False, str(error))  # type: ignore[assignment]
    except BaseException as error:
        answer = (False, f"{type(error).__name__}: {error}")  # type: ignore[assignment]
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
