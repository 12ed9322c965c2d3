"""What a parser is held to while it runs, and which lines it reached that no case before it did."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import warnings
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

import psutil

import ingest
from ingest.formats.profiles import otf2

CASE_SECONDS = 20.0
"""Most processor time of a case."""
MEMORY = 2 << 30
"""Most bytes of address space that a case may add to what the program has."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = frozenset(
    ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")
)
"""Audit events of what changes a file system beside opening a file."""


class TooSlow(BaseException):
    """A case took more than `CASE_SECONDS`; no parser catches it."""


class Wrote(BaseException):
    """A parser opened a file to write, made or removed one, or called a network; no parser catches it."""


class Fence:
    """Entered for each case; made once in a process, which is of no other use afterwards."""

    def __init__(self) -> None:
        self._closed = False
        # The library of OTF2 knows files only: its reader may write here and nowhere else.
        self._kept = tempfile.TemporaryDirectory(prefix="almanac-fuzz-")
        self._folder = tempfile.tempdir = self._kept.name
        otf2.SECONDS = int(CASE_SECONDS) or 1
        sys.dont_write_bytecode = True
        self._filters = warnings.catch_warnings()
        signal.signal(signal.SIGPROF, _too_slow)
        sys.addaudithook(self._watch)

    def __enter__(self) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        # The timer stops what runs in Python; the limit ends a process that does not come back to it.
        seconds = int(used.ru_utime + used.ru_stime + CASE_SECONDS) + 10
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))
        space = psutil.Process().memory_info().vms + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (space, resource.getrlimit(resource.RLIMIT_AS)[1]))
        signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)
        self._filters = warnings.catch_warnings(action="error")
        self._filters.__enter__()
        self._closed = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._filters.__exit__(None, None, None)
        for limit in (resource.RLIMIT_CPU, resource.RLIMIT_AS):
            hard = resource.getrlimit(limit)[1]
            resource.setrlimit(limit, (hard, hard))
        if error is None and (left := os.listdir(self._folder)):
            raise Wrote(f"files are left behind: {left[:5]}")

    def close(self) -> None:
        """Remove the folder for temporary files."""
        self._kept.cleanup()

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._closed:
            return
        if event == "open":
            path, _, flags = arguments
            if flags & WRITING and not self._allowed(path):
                raise Wrote(f"{path} was opened to write")
        elif event in CHANGES and not self._allowed(arguments[0]):
            # A temporary folder is emptied by names relative to it.
            if event not in {"os.remove", "os.rmdir"} or arguments[1] == -1:
                raise Wrote(f"{event} {arguments[0]}")
        elif event in {"socket.connect", "socket.bind"}:
            raise Wrote(f"{event} {arguments[1:]}")

    def _allowed(self, path: object) -> bool:
        return isinstance(path, (str, bytes)) and os.fsdecode(path).startswith(self._folder)


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlow(f"more than {CASE_SECONDS} s of processor time")


FOLDER = str(Path(ingest.__file__).parent)


class Coverage:
    """Counts new lines of `ingest` while it is entered; functions whose lines are all known cost nothing."""

    def __init__(self) -> None:
        self.new = 0
        """Lines seen for the first time since it was entered last."""
        self._left: dict[CodeType, set[int]] = {}
        self._foreign: set[CodeType] = set()

    def __enter__(self) -> Coverage:
        self.new = 0
        sys.settrace(self._called)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code in self._foreign:
            return None
        left = self._left.get(code)
        if left is None:
            if not code.co_filename.startswith(FOLDER):
                self._foreign.add(code)
                return None
            left = self._left[code] = {line for _, _, line in code.co_lines() if line is not None}
            left.discard(code.co_firstlineno)
        return self._stepped if left else None

    def _stepped(self, frame: FrameType, event: str, argument: Any) -> Any:
        left = self._left[frame.f_code]
        if frame.f_lineno in left:
            left.discard(frame.f_lineno)
            self.new += 1
        return self._stepped
