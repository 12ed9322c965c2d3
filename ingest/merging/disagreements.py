"""Disagreements of two sources, as lines that name both files."""

from __future__ import annotations

from collections.abc import Iterator

MOST = 10
"""Largest number of lines of one kind; the rest is counted."""


class Disagreements:
    """Disagreements between an earlier and a later source.

    Parameters
    ----------
    first, second : str
        Paths of the two sources.
    """

    def __init__(self, first: str, second: str) -> None:
        self.first = first
        self.second = second
        self._kinds: dict[str, list[str]] = {}

    def add(self, kind: str, line: str) -> None:
        """Add one disagreement of a kind."""
        self._kinds.setdefault(kind, []).append(line)

    def lines(self, *, without: str = "") -> Iterator[str]:
        """Yield one line per disagreement, ordered by kind, except those of the kind `without`."""
        between = f"{self.first} and {self.second} disagree"
        for kind, lines in self._kinds.items():
            if kind == without:
                continue
            for line in lines[:MOST]:
                yield f"{between}: {line}"
            if len(lines) > MOST:
                yield f"{between}: {len(lines) - MOST} more of {kind}"
