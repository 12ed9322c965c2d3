"""What placements gained, as measured: runs with a placement beside runs of the same program in order.

Compared are runs of the same program with the same arguments, ranks, hosts and slots that ended well, while
nothing was recorded; by the time of a step if enough of both kinds have it, else by the wall time. A
placement is worse than in order if its median is at least 2% above that of the runs in order, and the exact
rank-sum test (Mann and Whitney 1947, one-sided) gives that at most 1 chance in 20, which takes three runs of
each kind at least. Equal times count for the placement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb
from statistics import median

from registry.model.job import StoredMeasuredRun
from registry.model.views import one_line

NEEDED = 3
"""Smallest number of runs of each kind for a verdict."""
WINDOW = 20
"""Largest number of runs of each kind that are compared, the newest."""
WORSE = 1.02
"""A median below this multiple of the other is not worse."""
CHANCE = 0.05
"""Largest probability of a difference that is believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredGain:
    """Measured times with a placement and in order."""

    run: StoredMeasuredRun
    """Newest run with the placement."""
    placed: tuple[float, ...]
    in_order: tuple[float, ...]
    """Times of the runs that are compared, the newest first."""
    per_step: bool
    """True if they are times of a step, False if they are wall times."""
    placed_other_load: float | None = None
    in_order_other_load: float | None = None
    """Median load of other jobs during runs with the placement and in order, as a share of a link's capacity;
    None if it is known of none. See `StoredMeasuredRun`."""

    __repr__ = one_line

    @property
    def gain(self) -> float | None:
        """Median time in order divided by that with the placement; None if either is unknown."""
        if not self.placed or not self.in_order or not median(self.placed):
            return None
        return median(self.in_order) / median(self.placed)

    @property
    def estimated(self) -> float | None:
        """Estimated load of the worst link in order divided by that with the placement."""
        straight, found = self.run.in_order_congestion_seconds, self.run.congestion_seconds
        return straight / found if straight is not None and found else None

    @property
    def worse(self) -> bool:
        """True if the placement measured worse than the ranks in order; see the module."""
        return is_worse(self.placed, self.in_order)

    @property
    def text(self) -> str:
        """What was measured, as a sentence."""
        what = "a step" if self.per_step else "a run"
        kinds = ((self.placed, "with it"), (self.in_order, "in order"))
        times = (f"{median(times):.4g} s {how} ({len(times)} runs)" for times, how in kinds)
        return f"placement {self.run.placement} measured worse: {what} took {' and '.join(times)}"


def is_worse(placed: Sequence[float], in_order: Sequence[float]) -> bool:
    """Return True if times with a placement are above those in order beyond chance."""
    if min(len(placed), len(in_order)) < NEEDED or median(placed) < WORSE * median(in_order):
        return False
    slower = sum(one > other for one in placed for other in in_order)
    ways = sum(
        _arrangements(len(placed), len(in_order), count)
        for count in range(slower, len(placed) * len(in_order) + 1)
    )
    return ways <= CHANCE * comb(len(placed) + len(in_order), len(placed))


@cache
def _arrangements(one: int, other: int, slower: int) -> int:
    """Return the number of orders of two kinds of times in which so many pairs have the first one slower."""
    if slower < 0 or slower > one * other:
        return 0
    if not one or not other:
        return 1
    return _arrangements(one - 1, other, slower - other) + _arrangements(one, other - 1, slower)


def measured_gains(runs: Iterable[StoredMeasuredRun]) -> tuple[MeasuredGain, ...]:
    """Return the gain of each placement for each program that ran with it; `runs` are the newest first."""
    cases: dict[tuple[object, ...], list[StoredMeasuredRun]] = {}
    for run in runs:
        if run.exit_code == 0 and not run.recorded:
            case = (run.cluster, run.application, run.program, run.ranks, run.hosts, run.slots)
            cases.setdefault(case, []).append(run)
    found: list[MeasuredGain] = []
    for mine in cases.values():
        straight = [run for run in mine if run.placement is None]
        placed = dict.fromkeys(run.placement for run in mine if run.placement is not None)
        found += [_compare([run for run in mine if run.placement == name], straight) for name in placed]
    return tuple(found)


def _compare(placed: Sequence[StoredMeasuredRun], in_order: Sequence[StoredMeasuredRun]) -> MeasuredGain:
    """Return the gain by the times of steps if there are enough of them, or as many as wall times."""
    kinds = (placed, in_order)
    steps = [[run.step_seconds for run in kind if run.step_seconds is not None] for kind in kinds]
    per_step = all(len(times) >= min(NEEDED, len(kind)) for times, kind in zip(steps, kinds, strict=True))
    walls = [[run.wall_seconds for run in kind] for kind in kinds]
    one, other = (tuple(times[:WINDOW]) for times in (steps if per_step else walls))
    loads = [[run.other_load for run in kind if run.other_load is not None][:WINDOW] for kind in kinds]
    placed_load, in_order_load = (median(kind) if kind else None for kind in loads)
    return MeasuredGain(
        run=placed[0],
        placed=one,
        in_order=other,
        per_step=per_step,
        placed_other_load=placed_load,
        in_order_other_load=in_order_load,
    )


def worse_orders(runs: Iterable[StoredMeasuredRun]) -> dict[str, MeasuredGain]:
    """Return the placements that measured worse than in order, by the hash of their order of ranks."""
    return {one.run.rank_order: one for one in measured_gains(runs) if one.worse}
