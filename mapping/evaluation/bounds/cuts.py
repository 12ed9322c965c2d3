"""Cuts: what the guest must send between groups shares the cables that leave, or enter, the groups."""

from __future__ import annotations

from mapping.evaluation.bounds.cables import Cables
from mapping.evaluation.bounds.groups import Groups
from mapping.evaluation.bounds.partition import Crossings
from registry.model import Bound


def cut_bounds(
    crossings: Crossings,
    groups: Groups,
    cables: Cables,
    *,
    above: float = 0.0,
) -> list[Bound]:
    """Bounds on the worst of the groups' cables, in seconds.

    Parameters
    ----------
    above : float
        Seconds that are proved already: less work is done where more cannot be expected.

    Notes
    -----
    Every byte between two groups leaves the one over one of its cables at least, and enters the other.
    """
    capacity = min(float(cables.capacity[rows].sum()) for rows in (groups.leaving, groups.entering))
    total, argument = crossings.least(groups.slots, above=above * capacity)
    proof = (
        f"{groups.name}: at least {total:.6g} bytes cross between {len(groups.slots)} groups of hosts"
        f" ({groups.place}; by {argument}) and share the cables"
    )
    return [
        Bound(value=cables.least_seconds(rows, total), proof=f"{proof} that {way} them", name=groups.name)
        for rows, way in ((groups.leaving, "leave"), (groups.entering, "enter"))
    ]
