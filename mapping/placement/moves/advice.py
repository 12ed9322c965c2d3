"""Whether a running job should move: seconds saved per iteration against ranks to migrate."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mapping.placement.moves.remapping import Curve, Point
from registry.errors import InvalidValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What moving to one point of a curve costs and saves.

    Attributes
    ----------
    point : Point
    seconds_saved : float
        Per iteration: how much less the worst link is busy. The job saves so much where communication
        is not hidden and the worst link decides; below zero where the objective is another.
    saved_per_rank : float
        The same per moved rank; 0 where none moves.
    migration_seconds : float or None
        Of all moved ranks, one after another; None where the time of one is not known.
    break_even_iterations : float or None
        After which migration is paid back; inf where nothing is saved.
    worth_it : bool or None
        Whether the iterations that are left suffice; None where either is not known.
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
    """Advice for each point of a curve that moves ranks.

    Parameters
    ----------
    iterations : float
        That the profile recorded: its bytes over so many are those of one.
    rank_seconds : float, optional
        To migrate one rank.
    iterations_left : float, optional
        Of the job.

    Raises
    ------
    InvalidValue
    """
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
    """The point that leaves most seconds after migration; None where all cost more than they save."""
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
