"""What ``almanac history`` is asked for, and rows of its table from columns, which are read faster."""

from __future__ import annotations

import math
from datetime import UTC
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from registry.model.placement_series import PlacementSeries

COLUMNS = (
    *("id", "recorded_at", "cluster", "profile", "job", "role", "strategy", "congestion_seconds"),
    *("hop_bytes", "average_dilation", "complete"),
)
"""Of the table; fields of `StoredPlacementInfo`."""
_NAMES = {"profile": "profile_name"}


class Asked(NamedTuple):
    """Which rows of a history, and whether as JSON.

    Attributes
    ----------
    cluster, application, job : str or None
        Only rows of these.
    limit : int or None
        The newest so many.
    as_json : bool
    """

    cluster: str | None
    application: str | None
    job: str | None
    limit: int | None
    as_json: bool

    @property
    def of_cluster(self) -> int | None:
        """Rows of the cluster that are enough; None where others are left out of them afterwards."""
        return self.limit if self.application is None and self.job is None else None


def series_rows(series: PlacementSeries) -> list[list[Any]]:
    """A row of `COLUMNS` for each placement, the newest first, those of one moment by id."""
    import numpy as np

    newest = np.argsort(-series.recorded_at.astype(np.int64), kind="stable").tolist()
    columns = [getattr(series, _NAMES.get(name, name)) for name in COLUMNS]
    plain = [column if isinstance(column, tuple) else column.tolist() for column in columns]
    return [[_cell(column[row]) for column in plain] for row in newest]


def _cell(value: Any) -> Any:
    """What is shown: nothing for an empty text and a number that there is not, times in UTC."""
    if hasattr(value, "tzinfo"):
        return value.replace(tzinfo=UTC)
    if value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    return value
