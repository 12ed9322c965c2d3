"""Total work: the worst of several links is no better than all their bytes over all their capacity."""

from __future__ import annotations

from mapping.evaluation.bounds.cables import Cables
from registry.model import Bools, Bound


def total_work(hop_bytes: Bound, cables: Cables, rows: Bools, which: str) -> Bound:
    """Bound on the worst of some links, in seconds, from the least sum of what they carry.

    Parameters
    ----------
    hop_bytes : Bound
        On the bytes that all these links carry together.
    """
    least = f"{hop_bytes.value:.6g} bytes times links at least"
    return Bound(
        value=cables.least_seconds(rows, hop_bytes.value),
        proof=f"total-work: {least} on all {which} ({hop_bytes.proof})",
        name="total-work",
    )
