"""How long work tells that it is alive: one call, any sink."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called now and then by long work; sinks throttle, and must not raise."""

    def __call__(
        self, phase: str, done: float, total: float | None = None, best: float | None = None
    ) -> None:
        """Tell that `done` of `total` units of `phase` are done.

        Parameters
        ----------
        phase : str
            What is being done, in a few words.
        done, total : float
            Units done and units in all (None: not known).
        best : float, optional
            Value of the best result so far, in the unit of the objective.
        """


def silent(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
    """Progress that goes nowhere: the default."""
