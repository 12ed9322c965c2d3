"""Predicted loads compared with measured rates: periods per second, and links that differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from registry.errors import InvalidValue
from registry.model import Fabric, Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgainstCounters:
    """Predicted and measured utilisation, by row of ``fabric.links``.

    Attributes
    ----------
    periods_per_second : float
        Measured bytes/s divided by predicted bytes per period, each summed over the measured network links;
        NaN if one of the sums is zero.
    predicted_share, measured_share : float64[m]
        Share of capacity, 0 to 1; the predicted one at that number of periods per second. NaN if unknown.
    """

    periods_per_second: float
    predicted_share: Floats
    measured_share: Floats

    @property
    def difference(self) -> Floats:
        """Measured share minus predicted share (float64[m])."""
        return self.measured_share - self.predicted_share


def against_counters(fabric: Fabric, link_bytes: Floats, bytes_per_second: Floats) -> AgainstCounters:
    """Return predicted loads compared with measured rates.

    Parameters
    ----------
    link_bytes : float64[m]
        Predicted bytes per period.
    bytes_per_second : float64[m]
        Measured rates; NaN if not measured.

    Raises
    ------
    InvalidValue
        There is not one value per link.
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
