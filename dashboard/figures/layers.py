"""Charts one above the other."""

from __future__ import annotations

from typing import Any

import altair as alt


def layers(*charts: Any) -> alt.LayerChart:
    """The charts in one, the last on top."""
    return alt.LayerChart(layer=list(charts))
