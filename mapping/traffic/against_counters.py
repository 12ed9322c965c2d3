"""Predicted loads against what ports counted: how many periods a second, and which links differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from registry.errors import InvalidValue
from registry.model import Fabric, Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgainstCounters:
    """Shares of capacity, predicted and measured; rows of ``fabric.links``.

    Attributes
    ----------
    periods_per_second : float
        Bytes/s that were measured over bytes a period that are predicted, each summed over the network links
        whose traffic was measured; NaN where one of the sums is nothing.
    predicted_share, measured_share : float64[m]
        Of capacity, 0 to 1; the predicted one at that many periods a second. NaN where not known.
    """

    periods_per_second: float
    predicted_share: Floats
    measured_share: Floats

    @property
    def difference(self) -> Floats:
        """float64[m]: measured share less predicted share."""
        return self.measured_share - self.predicted_share


def against_counters(fabric: Fabric, link_bytes: Floats, bytes_per_second: Floats) -> AgainstCounters:
    """Predicted loads against measured rates.

    Parameters
    ----------
    link_bytes : float64[m]
        Predicted, a period.
    bytes_per_second : float64[m]
        Measured; NaN where nothing tells.

    Raises
    ------
    InvalidValue
        Not a value for each link.
    """
    capacity = fabric.links.capacity
    for name, values in (("link_bytes", link_bytes), ("bytes_per_second", bytes_per_second)):
        if values.shape != capacity.shape:
            raise InvalidValue(name, f"{len(values)} values for {len(capacity)} links")
    both = fabric.network_link & ~np.isnan(bytes_per_second)
    predicted, measured = float(link_bytes[both].sum()), float(bytes_per_second[both].sum())
    scale = measured / predicted if predicted > 0 and measured > 0 else float("nan")
    return AgainstCounters(
        periods_per_second=scale,
        predicted_share=scale * link_bytes / capacity,
        measured_share=bytes_per_second / capacity,
    )
