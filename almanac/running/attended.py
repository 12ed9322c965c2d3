"""A launcher started as a child process, so that its time can be measured and its output searched.

For everyone outside this process is the launcher: signals go on to it, it has the same standard streams, and
this process ends as it ended. Only if its output is to be searched, standard output is a pipe.
"""

from __future__ import annotations

import contextlib
import os
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
from typing import NoReturn

from registry.database.supervisor import die_with_parent

_JOB_CONTROL = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT}
_LONGEST_LINE = 1 << 16


@dataclass(slots=True)
class Steps:
    """Times of the steps of a program, found in its output.

    Attributes
    ----------
    pattern : pattern of bytes
        What the program prints once per step; its first group, if it has one, is the time in seconds.
    """

    pattern: re.Pattern[bytes]
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

    Raises
    ------
    OSError
        It cannot be started.
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
