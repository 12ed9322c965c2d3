"""Injection and ejection: what a rank cannot keep in its group crosses that group's cables."""

from __future__ import annotations

import numpy as np

from mapping.evaluation.bounds.groups import Groups
from mapping.evaluation.bounds.guest import Partners
from registry.model import Bound, Floats, Longs


def injection_bounds(partners: Partners, groups: Groups) -> list[Bound]:
    """Bounds on the worst cable of the groups, in seconds.

    Notes
    -----
    With its heaviest partners in all other seats of its group, the rest of a rank's bytes still cross, and
    so does what ranks exchange that sit beside it for want of other seats. The heaviest ranks take the
    fastest groups: no other seating has a better worst one.
    """
    kept = int(groups.slots.max()) - 1
    sent, received = partners.sent.beyond(kept), partners.received.beyond(kept)
    out, into = (side + _company(side, groups.slots) for side in (sent, received))
    place = groups.place
    proof = f"what a rank cannot keep on its {place} crosses that {place}'s cables"
    slower = np.minimum(groups.outwards, groups.inwards)
    return [
        _worst(out, groups.outwards, groups.slots, "injection", f"injection: {proof}"),
        _worst(into, groups.inwards, groups.slots, "ejection", f"ejection: {proof}"),
        _worst(np.maximum(out, into), slower, groups.slots, "injection", f"injection and ejection: {proof}"),
    ]


def _company(crossing: Floats, slots: Longs) -> float:
    """What the ranks that at least sit beside any rank, for want of other seats, add to its group."""
    beside = len(crossing) - int(slots.sum()) + int(slots.min()) - 1
    return float(np.sort(crossing)[: max(beside, 0)].sum())


def _worst(crossing: Floats, rates: Floats, slots: Longs, name: str, proof: str) -> Bound:
    seats = np.sort(np.repeat(rates, slots))[: len(crossing)]
    return Bound(value=float((np.sort(crossing)[::-1] * seats).max()), proof=proof, name=name)
