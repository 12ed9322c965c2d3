"""Certified lower bounds on the cost of any placement, each named after the argument that proves it.

Input: routes, a profile and an allocation.
Output: a bound for each metric, with the name of its argument.

``injection``, ``ejection``
    What a rank exchanges with ranks that cannot share its host (leaf switch, pod) crosses its cables.
``switch-cut``, ``pod-cut``, ``bisection``
    Hosts, switches and pods, or the parts of a bisected network, take groups of limited size; what the
    guest must send between such groups shares the cables that leave them.
``total-work``
    The worst of several links is no better than all their bytes over all their capacity.
``gilmore-lawler``
    Each rank's heaviest partners on the nearest seats.
``nested-cuts``
    What must cross between groups of hosts pays the distance between them, group within group.
``common-partners``
    On direct networks, ranks with common partners cannot all be neighbours.

How little the guest can send between groups is in ``mapping.evaluation.bounds.partition``. The bounds hold
for every placement on the allocation, pinned ranks or not, and on any routing: distances are the routing's
own, and no way leads past the cables of a cut. Background (``mapping.distances.background``) takes capacity
away where it is reduced; where it is added, bytes of others take room in all arguments that sum over cables.
"""

from __future__ import annotations

from mapping.distances.background import Background
from mapping.evaluation.bounds.catalog import METRICS, every_bound
from mapping.evaluation.bounds.hop_bytes import least_cost
from mapping.evaluation.bounds.nearest_seats import gilmore_lawler
from mapping.evaluation.bounds.parts import NOT_TRIED
from mapping.routing.routes import Routes
from registry.model import Allocation, Bound, Profile

__all__ = ["METRICS", "every_bound", "gilmore_lawler", "least_cost", "lower_bounds"]

_ROUNDING = 1.0 - 1e-9
"""Sums in floating point may come out a little high: every bound is lowered by this much."""


def lower_bounds(
    routes: Routes, profile: Profile, allocation: Allocation, *, background: Background | None = None
) -> dict[str, Bound]:
    """Bounds for every placement of a profile on an allocation.

    Parameters
    ----------
    routes : Routes
        Between the allocation's hosts, in its order.
    background : Background, optional
        Other jobs' load.

    Returns
    -------
    dict of str to Bound
        ``congestion_seconds``, ``network_congestion_seconds`` and ``hop_bytes``: of each the best of
        `every_bound`, whose proof also says which arguments were left out for size.

    Raises
    ------
    InfeasibleAllocation
        More ranks than slots.
    DisconnectedAllocation, UnreachablePair
        Two hosts of the allocation are not connected.
    InvalidValue
        A background of another fabric.
    """
    found = every_bound(routes, profile, allocation, background=background)
    return {metric: _best(found[metric]) for metric in METRICS}


def _best(bounds: tuple[Bound, ...]) -> Bound:
    """The highest bound, the first of equals, lowered by what rounding may have added."""
    best = max(bounds, key=lambda bound: bound.value)
    left_out = "".join(f"; {bound.proof}" for bound in bounds if bound.proof.startswith(NOT_TRIED))
    if best.value <= 0.0:
        proof = best.proof if best.name == "one-host" else "no argument known here gives more than zero"
        return Bound(value=0.0, proof=proof + left_out, name=best.name if best.name == "one-host" else "none")
    return Bound(value=best.value * _ROUNDING, proof=best.proof + left_out, name=best.name)
