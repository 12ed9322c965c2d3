"""What else is on the links while a job runs: other jobs' routes as load or as lost capacity.

``added``
    The others send these bytes in the same period as the job sends its own. A link's time is all its
    bytes, theirs and ours, over its capacity.
``reduced``
    The others send at these rates (bytes/s) all the time. A link's time is our bytes over the capacity
    that they leave, of which a stated part (`Background.floor`) is always left.

A link that only others load costs this job nothing: it counts in no congestion, whatever is on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from registry.errors import InvalidValue
from registry.model import Evaluation, Fabric, Floats

ADDED, REDUCED = "added", "reduced"
FLOOR = 0.01
"""Part of a link's capacity that is left to us whatever others send."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Background:
    """Other jobs' load on the links of a fabric.

    Attributes
    ----------
    kind : str
        ``added`` or ``reduced``.
    load : float64[m]
        By row of ``fabric.links``: bytes in the period where `added`, bytes/s where `reduced`; >= 0.
    jobs : int
        How many other jobs these are; for the text.
    floor : float
        For `reduced`: part of each link's capacity that is always left, above 0 and at most 1.
    """

    kind: str
    load: Floats
    jobs: int = 1
    floor: float = FLOOR

    def __post_init__(self) -> None:
        if self.kind not in (ADDED, REDUCED):
            raise InvalidValue("Background.kind", f"is {self.kind!r}, neither {ADDED!r} nor {REDUCED!r}")
        load = np.array(self.load, np.float64)
        if load.ndim != 1:
            raise InvalidValue("Background.load", f"has {load.ndim} dimensions, not 1")
        fault = ~(np.isfinite(load) & (load >= 0))
        if fault.any():
            row = int(np.argmax(fault))
            raise InvalidValue("Background.load", f"{load[row]:g} on link {row} is not finite, or below zero")
        if not 0 < self.floor <= 1:
            raise InvalidValue("Background.floor", f"{self.floor:g} is not above 0 and at most 1")
        load.flags.writeable = False
        object.__setattr__(self, "load", load)

    @classmethod
    def added(cls, evaluations: Sequence[Evaluation], *, times: ArrayLike = 1.0) -> Self:
        """The bytes of other jobs' placements, each as often as it repeats in our period.

        Parameters
        ----------
        evaluations : sequence of Evaluation
            Of the other jobs' placements on the same fabric.
        times : float or float[jobs]
            Iterations that each of them does while we do what our profile holds.

        Raises
        ------
        InvalidValue
        """
        return cls(kind=ADDED, load=_summed(evaluations, times), jobs=len(evaluations))

    @classmethod
    def reduced(cls, evaluations: Sequence[Evaluation], seconds: ArrayLike, *, floor: float = FLOOR) -> Self:
        """The rates of other jobs' placements.

        Parameters
        ----------
        seconds : float or float[jobs]
            Time in which each of them sends what its evaluation holds; above zero.

        Raises
        ------
        InvalidValue
        """
        period = np.broadcast_to(np.asarray(seconds, np.float64), (len(evaluations),))
        if not bool((period > 0).all()):
            raise InvalidValue("Background.seconds", "a job's period must be above zero")
        return cls(kind=REDUCED, load=_summed(evaluations, 1.0 / period), jobs=len(evaluations), floor=floor)

    def link_bytes(self, fabric: Fabric) -> Floats:
        """float64[m]: bytes that are on the links beside our own; all zero where capacity is reduced.

        Raises
        ------
        InvalidValue
            The load is for another number of links.
        """
        self._check(fabric)
        return self.load if self.kind == ADDED else np.zeros(len(self.load))

    def capacity(self, fabric: Fabric) -> Floats:
        """float64[m]: bytes/s that are left to us: no less than `floor` times each link's own.

        Raises
        ------
        InvalidValue
        """
        self._check(fabric)
        own = fabric.links.capacity
        return own if self.kind == ADDED else np.maximum(own - self.load, self.floor * own)

    def floored(self, fabric: Fabric) -> int:
        """Links on which others ask for more than they may take, so that the floor holds."""
        own = fabric.links.capacity
        return int((own - self.load < self.floor * own).sum()) if self.kind == REDUCED else 0

    def told(self, fabric: Fabric) -> str:
        """What an evaluation says of it."""
        jobs = f"{self.jobs} other job" + "s" * (self.jobs != 1)
        if self.kind == ADDED:
            return f"added: {self.load.sum():.6g} bytes of {jobs} on all links"
        at_floor = self.floored(fabric)
        return (
            f"reduced: the capacity that {jobs} leave{'s' * (self.jobs == 1)}, at least {self.floor:g}"
            f" of each link ({at_floor} links at that)"
        )

    def _check(self, fabric: Fabric) -> None:
        if len(self.load) != len(fabric.links):
            raise InvalidValue(
                "Background.load", f"has {len(self.load)} entries for {len(fabric.links)} links"
            )


def _summed(evaluations: Iterable[Evaluation], times: ArrayLike) -> Floats:
    loads = [evaluation.link_bytes for evaluation in evaluations]
    if not loads:
        raise InvalidValue("Background.load", "no other job is given")
    if len({len(load) for load in loads}) != 1:
        raise InvalidValue("Background.load", "the other jobs' evaluations are of different fabrics")
    weight = np.broadcast_to(np.asarray(times, np.float64), (len(loads),))
    return np.asarray(weight @ np.stack(loads), np.float64)
