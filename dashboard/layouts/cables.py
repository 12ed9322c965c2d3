"""The two directions of a cable joined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dashboard.layouts.order import running
from registry.model import Fabric, Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cables:
    """The cables of a fabric: each pair of opposite links once, ordered by their ends and ports.

    Attributes
    ----------
    a, b : int64[c]
        Vertices, ``a < b``.
    there, back : int64[c]
        Rows of ``fabric.links`` from a to b and from b to a; -1 for a direction that is missing.
    """

    a: Longs
    b: Longs
    there: Longs
    back: Longs

    def __len__(self) -> int:
        return len(self.a)


def cables(fabric: Fabric) -> Cables:
    """The cables of a fabric. Those of a source that knows no ports are told apart by their order only."""
    links = fabric.links
    forth = links.source < links.target
    ends = [
        np.where(forth, *(getattr(links, f"{end}{what}") for end in order)).astype(np.int64)
        for what in ("", "_port", "_adapter")
        for order in (("source", "target"), ("target", "source"))
    ]
    twin = running(*ends, forth.astype(np.int64))
    order = np.lexsort((~forth, twin, *reversed(ends)))
    keys = np.stack([*ends, twin])[:, order]
    starts = np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)] if len(order) else np.zeros(0, bool)
    cable = np.cumsum(starts) - 1
    count = int(starts.sum())
    rows = np.full((2, count), -1, np.int64)
    rows[np.where(forth[order], 0, 1), cable] = order
    a, b = keys[0][starts], keys[1][starts]
    return Cables(a=a, b=b, there=rows[0], back=rows[1])
