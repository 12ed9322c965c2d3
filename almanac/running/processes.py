"""Launchers and searches in child processes.

A launcher started as a child process, so that its time can be measured and its output searched.

For everyone outside this process is the launcher: signals go on to it, it has the same standard streams, and
this process ends as it ended. Only if its output is to be searched, standard output is a pipe.

Work in a child process with a time limit, so that nothing that happens in it harms this process.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import re
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from registry.database.supervisor import die_with_parent
from registry.errors import AlmanacError, Unplaced

_JOB_CONTROL = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT}
_LONGEST_LINE = 1 << 16


@dataclass(slots=True)
class Steps:
    """Times of the steps of a program, found in its output."""

    pattern: re.Pattern[bytes]
    """What the program prints once per step; its first group, if it has one, is the time in seconds."""
    _times: list[float] = field(default_factory=list)
    _rest: bytes = b""

    def add(self, output: bytes, came: float) -> None:
        """Search further output, which came at a time."""
        *lines, self._rest = (self._rest + output).split(b"\n")
        self._rest = self._rest[-_LONGEST_LINE:]
        for found in filter(None, map(self.pattern.search, lines)):
            if not self.pattern.groups:
                self._times.append(came)
                continue
            with contextlib.suppress(ValueError, TypeError):
                self._times.append(float(found[1]))

    @property
    def count(self) -> int:
        """Number of steps whose time is known."""
        return len(self._times) if self.pattern.groups else max(len(self._times) - 1, 0)

    @property
    def seconds(self) -> float | None:
        """Median of the printed times, or the mean time between two steps; None if no step was found."""
        if not self.count:
            return None
        if self.pattern.groups:
            return median(self._times)
        return (self._times[-1] - self._times[0]) / self.count


def attend(words: Sequence[str], environment: Mapping[str, str], steps: Steps | None) -> tuple[int, float]:
    """Run a launcher to its end; return its exit code (negative: the signal) and its wall time.

    Raises:
        OSError: It cannot be started.
    """
    terminal = _has_terminal()
    held = signal.valid_signals() - (_JOB_CONTROL if terminal else set())
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    begin = time.monotonic()
    try:
        with contextlib.ExitStack() as stack:
            output = None if steps is None else _Output(stack)
            child = _start(words, environment, before, None if output is None else output.end, not terminal)
            if output is not None and steps is not None:
                output.search(steps)
            code = _wait(child, held)
        return code, time.monotonic() - begin
    finally:
        while signal.sigtimedwait(held, 0) is not None:  # sent to a launcher that had ended
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def become(words: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by a launcher; raises `OSError` if that is not possible."""
    for name in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and what it starts would, too
        signal.signal(name, signal.SIG_DFL)
    # The words are the user's, and no shell interprets them.
    os.execvpe(words[0], list(words), dict(environment))  # noqa: S606


def end_as(code: int) -> NoReturn:
    """End this process as the launcher ended: by an exit code, or by the signal of a negative one."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with contextlib.suppress(OSError, ValueError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


class _Output:
    """Standard output of the launcher: a pipe whose content is written on at once, and searched."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._own, self.end = os.pipe()
        self._ended, self._end = os.pipe()
        self._thread: threading.Thread | None = None
        stack.callback(self._close)

    def search(self, steps: Steps) -> None:
        """Begin to pass the output on."""
        os.close(self.end)
        self.end = -1
        self._thread = threading.Thread(target=self._pass_on, args=(steps.add,), daemon=True)
        self._thread.start()

    def _pass_on(self, search: Callable[[bytes, float], None]) -> None:
        """Write on what comes until the launcher has ended and the pipe is empty."""
        while True:
            ready, _, _ = select.select([self._own, self._ended], [], [])
            if self._own not in ready:
                return
            part = os.read(self._own, 1 << 16)
            if not part:
                return
            came, left = time.monotonic(), part
            try:
                while left:
                    left = left[os.write(1, left) :]
            except OSError:  # nobody reads any more: so the launcher learns it as well
                os.close(self._own)
                self._own = -1
                return
            search(part, came)

    def _close(self) -> None:
        os.close(self._end)
        if self._thread is not None:
            self._thread.join()
        for end in (self._own, self._ended, self.end):
            if end >= 0:
                os.close(end)


def _start(
    words: Sequence[str],
    environment: Mapping[str, str],
    mask: set[int | signal.Signals],
    output: int | None,
    own_group: bool,
) -> int:
    """Start the launcher and return its process id; raises `OSError` if it cannot be started."""
    ends_with_us = die_with_parent() if sys.platform == "linux" else None
    failed, fails = os.pipe()  # closed by the start of the launcher
    child = os.fork()
    if child == 0:
        try:
            if own_group:
                os.setpgid(0, 0)
            if output is not None:
                os.dup2(output, 1)
            if ends_with_us is not None:
                ends_with_us()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            become(words, environment)
        except OSError as error:
            os.write(fails, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(fails)
    with open(failed, "rb") as file:
        reason = file.read()
    if reason:
        os.waitpid(child, 0)
        raise OSError(int(reason), os.strerror(int(reason)))
    return child


def _wait(child: int, held: set[signal.Signals]) -> int:
    """Pass signals on until the launcher ends; return its exit code, or its signal as a negative number.

    A signal of the terminal reaches the whole process group, and so the launcher, without us.
    """
    while True:
        found = signal.sigwaitinfo(held)
        if found.si_signo == signal.SIGCHLD:
            process, status = os.waitpid(child, os.WNOHANG)
            if process:
                return os.waitstatus_to_exitcode(status)
        elif found.si_code <= 0:
            os.kill(child, found.si_signo)


def _has_terminal() -> bool:
    """Return True if a terminal controls this process; then the launcher stays in its process group."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


T = TypeVar("T")


def answer_within(seconds: float, work: Callable[[], T]) -> T:
    """Return the result of a function that runs in a child process, which is killed if it takes too long.

    Raises:
        Unplaced: It raised an error, ended without a result, or took longer.
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

        Args:
            seconds: Longest time since the child was started.
            goes_on: How many seconds longer the child may work at the lowest priority, for what it stores.

        Raises:
            Unplaced: The work raised an error, ended without a result, or took longer.
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
