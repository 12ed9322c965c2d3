"""What two sources disagree on, in words that name both files."""

from __future__ import annotations

from collections.abc import Iterator

MOST = 10
"""Lines of one kind that are told; the rest is counted."""


class Notes:
    """Disagreements between an earlier and a later source.

    Parameters
    ----------
    first, second : str
        Paths of the two.
    """

    def __init__(self, first: str, second: str) -> None:
        self.first = first
        self.second = second
        self._kinds: dict[str, list[str]] = {}

    def add(self, kind: str, line: str) -> None:
        """Note one disagreement of a kind."""
        self._kinds.setdefault(kind, []).append(line)

    def lines(self, *, without: str = "") -> Iterator[str]:
        """A line a disagreement, kind by kind but for one, both files named in each."""
        between = f"{self.first} and {self.second} disagree"
        for kind, lines in self._kinds.items():
            if kind == without:
                continue
            for line in lines[:MOST]:
                yield f"{between}: {line}"
            if len(lines) > MOST:
                yield f"{between}: {len(lines) - MOST} more of {kind}"
