"""Tables and texts of measured gains. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import Enum
from statistics import median

import pandas as pd

from dashboard.tables.columns import in_utc, numbers
from mapping.traffic.measured_gain import NEEDED, MeasuredGain
from registry import units


class Verdict(Enum):
    """What runs with a placement and runs in order say about it: a sign and words."""

    WORSE = ("▲", "measured worse than in order")
    NOT_WORSE = ("●", "not worse than in order")
    OPEN = ("○", "too few runs to judge")

    @property
    def text(self) -> str:
        """Sign and words, for a table."""
        return " ".join(self.value)


def verdict(one: MeasuredGain) -> Verdict:
    """Return what is known of a placement by the rule of `mapping.traffic.measured_gain`."""
    if min(len(one.placed), len(one.in_order)) < NEEDED:
        return Verdict.OPEN
    return Verdict.WORSE if one.worse else Verdict.NOT_WORSE


def gain_text(gain: float | None) -> str:
    """Return a gain as text: ``1.09 ×``."""
    return "–" if gain is None else f"{gain:.2f} ×"


def times_text(one: MeasuredGain) -> str:
    """Return the median times: ``a run: 57 s placed (4 runs), 62 s in order (1 run)``."""
    kinds = ((one.placed, "placed"), (one.in_order, "in order"))
    times = (
        f"{units.short(median(kind), units.SECONDS)} {how} ({units.counted(len(kind), 'run')})"
        for kind, how in kinds
        if kind
    )
    return f"a {_compared(one)}: {', '.join(times)}"


def gains_table(gains: Sequence[MeasuredGain]) -> pd.DataFrame:
    """Return a row for each placement and program; the medians of all are in one unit."""
    medians = [
        numbers(median(kind) if kind else None for kind in kinds)
        for kinds in ([one.placed for one in gains], [one.in_order for one in gains])
    ]
    unit = units.unit_for([time for kind in medians for time in kind if not math.isnan(time)], units.SECONDS)
    placed, in_order = ([float(f"{time / unit.size:.3g}") for time in kind] for kind in medians)
    return pd.DataFrame(
        {
            "application": [one.run.application for one in gains],
            "placement": [one.run.placement for one in gains],
            "estimated gain": numbers(one.estimated for one in gains),
            "measured gain": numbers(one.gain for one in gains),
            "verdict": [verdict(one).text for one in gains],
            f"placed ({unit.name})": placed,
            f"in order ({unit.name})": in_order,
            "time of": [_compared(one) for one in gains],
            "runs placed": [len(one.placed) for one in gains],
            "runs in order": [len(one.in_order) for one in gains],
            "other load placed (%)": _percent(one.placed_other_load for one in gains),
            "other load in order (%)": _percent(one.in_order_other_load for one in gains),
            "launcher": [one.run.launcher for one in gains],
            "ranks": [one.run.ranks for one in gains],
            "cluster": [one.run.cluster for one in gains],
            "last run (UTC)": in_utc(one.run.started_at for one in gains),
        }
    )


def _percent(shares: Iterable[float | None]) -> list[float]:
    """Return shares in percent; NaN for unknown ones."""
    return numbers(None if share is None else round(100 * share, 1) for share in shares)


def _compared(one: MeasuredGain) -> str:
    return "step" if one.per_step else "run"
