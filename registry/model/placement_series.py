"""Many placements as columns, for plots and regression checks of a history."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from registry.errors import InvalidValue
from registry.model.arrays import Bools, Floats, Ints, Longs, freeze, freeze_all
from registry.model.views import one_line

Moments = NDArray[np.datetime64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacementSeries:
    """Placements by time, then id; n rows in every column.

    Missing texts are empty, missing numbers NaN.

    Attributes
    ----------
    recorded_at : datetime64[us][n]
        UTC.
    application, profile, profile_name : tuple of str
        Application, id and latest name of the profile.
    job : tuple of str
        The scheduler's id.
    role : tuple of str
        ``present`` (a job ran with it) or ``proposed`` (by a search).
    strategy, objective, routing, code_version : tuple of str
        See `Placement` and `Evaluation`.
    tables, snapshot : tuple of str
        Ids of the forwarding tables and of the snapshot of the evaluation.
    allocation : tuple of str
        Id of the hosts and slots, in their order.
    order : tuple of str
        Digest of the host of each rank; empty for placements of earlier versions.
    background : tuple of str
        Load of other jobs in the evaluation.
    ranks : int32[n]
    complete : bool[n]
    congestion_seconds, network_congestion_seconds, hop_bytes, average_dilation : float64[n]
        See `Metrics`.
    bound_congestion_seconds, bound_network_congestion_seconds, bound_hop_bytes : float64[n]
        Certified lower bounds.
    in_order_congestion_seconds, in_order_network_congestion_seconds : float64[n]
    in_order_hop_bytes, in_order_average_dilation : float64[n]
        Metrics of the same ranks in order.
    """

    id: tuple[str, ...]
    cluster: tuple[str, ...]
    recorded_at: Moments
    application: tuple[str, ...]
    profile: tuple[str, ...]
    profile_name: tuple[str, ...]
    job: tuple[str, ...]
    role: tuple[str, ...]
    strategy: tuple[str, ...]
    objective: tuple[str, ...]
    routing: tuple[str, ...]
    tables: tuple[str, ...]
    snapshot: tuple[str, ...]
    allocation: tuple[str, ...]
    order: tuple[str, ...]
    background: tuple[str, ...]
    code_version: tuple[str, ...]
    ranks: Ints
    complete: Bools
    congestion_seconds: Floats
    network_congestion_seconds: Floats
    hop_bytes: Floats
    average_dilation: Floats
    bound_congestion_seconds: Floats
    bound_network_congestion_seconds: Floats
    bound_hop_bytes: Floats
    in_order_congestion_seconds: Floats
    in_order_network_congestion_seconds: Floats
    in_order_hop_bytes: Floats
    in_order_average_dilation: Floats

    __repr__ = one_line

    def __post_init__(self) -> None:
        n = len(self.id)
        for name in _TEXTS:
            if len(getattr(self, name)) != n:
                raise InvalidValue(f"PlacementSeries.{name}", f"needs {n} entries")
        freeze(self, "recorded_at", np.dtype("datetime64[us]"), n)
        freeze_all(self, n, "ranks", "complete", *_NUMBERS)

    def __len__(self) -> int:
        return len(self.id)

    def take(self, rows: Longs) -> PlacementSeries:
        """Return some of the rows, in the given order."""
        chosen: dict[str, Any] = {
            name: tuple(map(getattr(self, name).__getitem__, rows.tolist())) for name in _TEXTS
        }
        arrays = {name: getattr(self, name)[rows] for name in ("recorded_at", "ranks", "complete", *_NUMBERS)}
        return PlacementSeries(**chosen, **arrays)


_TEXTS = tuple(field.name for field in fields(PlacementSeries) if field.type == "tuple[str, ...]")
_NUMBERS = tuple(field.name for field in fields(PlacementSeries) if field.type == "Floats")
