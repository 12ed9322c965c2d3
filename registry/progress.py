"""Progress reports of long work: one call, any receiver."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Function that long work calls from time to time; it limits its own output and must not raise."""

    def __call__(
        self, phase: str, done: float, total: float | None = None, best: float | None = None
    ) -> None:
        """Report that `done` of `total` units of `phase` are done.

        Args:
            phase: Description of the work in a few words.
            done, total: Units done and units in all (None: unknown).
            best: Value of the best result so far, in the unit of the objective.
        """


def silent(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
    """Report nothing: the default."""
