"""Bounds on the worst cable, in seconds: injection and ejection, cuts, and total work."""

from __future__ import annotations

import numpy as np

from mapping.evaluation.bounds.cables import Cables
from mapping.evaluation.bounds.cut_groups import Groups
from mapping.evaluation.bounds.partition import Crossings
from registry.model import Bools, Bound, Floats, Longs


def injection_bounds(crossings: Crossings, groups: Groups) -> list[Bound]:
    """Return bounds from bytes that a rank's group cannot keep.

    Notes
    -----
    With its heaviest partners in all other slots of its group, the rest of a rank's bytes still cross, and so
    do bytes of ranks that must share its group because other slots are too few. If groups are small, the
    least bytes out of any group with the rank are found by enumeration. The heaviest ranks take the fastest
    groups: no other assignment has a smaller maximum.
    """
    size, partners = int(groups.slots.max()), crossings.partners
    out, into = (
        _crossing(
            side.beyond(size - 1), groups.slots, crossings.small_groups.leaving(groups.slots, side.beyond(0))
        )
        for side in (partners.sent, partners.received)
    )
    place = groups.place
    proof = f"what a rank's {place} cannot keep crosses that {place}'s cables"
    slower = np.minimum(groups.outwards, groups.inwards)
    return [
        _worst(out, groups.outwards, groups.slots, "injection", f"injection: {proof}"),
        _worst(into, groups.inwards, groups.slots, "ejection", f"ejection: {proof}"),
        _worst(np.maximum(out, into), slower, groups.slots, "injection", f"injection and ejection: {proof}"),
    ]


def _crossing(beyond: Floats, slots: Longs, enumerated: Floats | None) -> Floats:
    """Return the least bytes (float64[ranks]) that each rank's group sends (or receives)."""
    crossing = beyond + _shared_group_bytes(beyond, slots)
    return crossing if enumerated is None else np.maximum(crossing, enumerated)


def _shared_group_bytes(crossing: Floats, slots: Longs) -> float:
    """Return the least bytes of the other ranks that must be in any rank's group for lack of slots."""
    others = len(crossing) - int(slots.sum()) + int(slots.min()) - 1
    return float(np.sort(crossing)[: max(others, 0)].sum())


def _worst(crossing: Floats, rates: Floats, slots: Longs, name: str, proof: str) -> Bound:
    """Return the largest time of a rank, with the heaviest ranks on the fastest slots."""
    fastest = np.sort(np.repeat(rates, slots))[: len(crossing)]
    return Bound(value=float((np.sort(crossing)[::-1] * fastest).max()), proof=proof, name=name)


def cut_bounds(crossings: Crossings, groups: Groups, cables: Cables, *, above: float = 0.0) -> list[Bound]:
    """Return bounds from bytes that the guest must send between groups.

    Parameters
    ----------
    above : float
        Seconds that are proved already: less work is done if no more can be expected.

    Notes
    -----
    Every byte between two groups leaves one group over at least one of its cables, and enters the other.
    """
    capacity = min(float(cables.capacity[rows].sum()) for rows in (groups.leaving, groups.entering))
    total, argument = crossings.least(groups.slots, above=above * capacity)
    proof = (
        f"{groups.name}: at least {total:.6g} bytes cross between {len(groups.slots)} groups of hosts"
        f" ({groups.place}; by {argument}) and share the cables"
    )
    return [
        Bound(value=cables.least_seconds(rows, total), proof=f"{proof} that {verb} them", name=groups.name)
        for rows, verb in ((groups.leaving, "leave"), (groups.entering, "enter"))
    ]


def total_work(hop_bytes: Bound, cables: Cables, rows: Bools, which: str) -> Bound:
    """Return a bound from the least sum of bytes on some links.

    Parameters
    ----------
    hop_bytes : Bound
        Bound on the bytes that all these links carry together.
    """
    least = f"{hop_bytes.value:.6g} bytes times links at least"
    return Bound(
        value=cables.least_seconds(rows, hop_bytes.value),
        proof=f"total-work: {least} on all {which} ({hop_bytes.proof})",
        name="total-work",
    )
