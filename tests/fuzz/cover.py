"""Which lines of the parsers a case reached that no case before it did."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

import ingest

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
