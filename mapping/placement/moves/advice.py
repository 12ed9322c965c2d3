"""Advice whether a running job should move: seconds saved per iteration against ranks to migrate."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mapping.placement.moves.remapping import Curve, Point
from registry.errors import InvalidValue
from registry.model.views import content


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Cost and gain of moving to one point of a curve.

    Attributes
    ----------
    point : Point
    seconds_saved : float
        Time per iteration by which the worst link is less busy. The job saves it if communication is not
        hidden and the worst link decides; it may be negative with another objective.
    saved_per_rank : float
        Seconds saved per moved rank; 0 if none moves.
    migration_seconds : float or None
        Time to migrate all moved ranks, one after another; None if the time of one is unknown.
    break_even_iterations : float or None
        Iterations after which the migration has paid off; inf if nothing is saved.
    worth_it : bool or None
        True if the remaining iterations suffice; None if either number is unknown.
    """

    point: Point
    seconds_saved: float
    saved_per_rank: float
    migration_seconds: float | None
    break_even_iterations: float | None
    worth_it: bool | None


def advise(
    curve: Curve,
    *,
    iterations: float = 1.0,
    rank_seconds: float | None = None,
    iterations_left: float | None = None,
) -> tuple[Advice, ...]:
    """Return advice for each point of a curve that moves ranks.

    Parameters
    ----------
    iterations : float
        Number of iterations that the profile recorded.
    rank_seconds : float, optional
        Seconds to migrate one rank.
    iterations_left : float, optional
        Remaining iterations of the job.

    Raises
    ------
    InvalidValue
    """
    curve = content(curve, Curve, "curve")
    if not 0 < iterations < math.inf:
        raise InvalidValue("advise.iterations", "must be above zero")
    for name, value in (("rank_seconds", rank_seconds), ("iterations_left", iterations_left)):
        if value is not None and not 0 <= value < math.inf:
            raise InvalidValue(f"advise.{name}", "must not be below zero")
    now = curve.points[0].score.congestion_seconds
    return tuple(
        _advice(point, (now - point.score.congestion_seconds) / iterations, rank_seconds, iterations_left)
        for point in curve.points[1:]
    )


def best(advice: tuple[Advice, ...], iterations_left: float, rank_seconds: float) -> Advice | None:
    """Return the point that saves most seconds after migration; None if all cost more than they save."""
    net = [one.seconds_saved * iterations_left - one.point.moved * rank_seconds for one in advice]
    highest = max(net, default=0.0)
    return advice[net.index(highest)] if highest > 0 else None


def _advice(point: Point, saved: float, rank_seconds: float | None, left: float | None) -> Advice:
    cost = None if rank_seconds is None else rank_seconds * point.moved
    even = None
    if cost is not None:
        even = cost / saved if saved > 0 else math.inf
    return Advice(
        point=point,
        seconds_saved=saved,
        saved_per_rank=saved / point.moved if point.moved else 0.0,
        migration_seconds=cost,
        break_even_iterations=even,
        worth_it=None if even is None or left is None else even < left,
    )
