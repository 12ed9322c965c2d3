"""Charts of the page Trends: placements over time, and two placements or clusters compared.

Tables and charts' data of the page Trends. Pure functions.

Tables and texts of measured gains. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import Enum
from statistics import median
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from dashboard.shared.cards import DARK, INK, LIGHT, layers
from dashboard.shared.names import METRICS
from dashboard.shared.traffic import in_utc, numbers
from mapping.traffic.job_loads import Quality, by_application
from mapping.traffic.measured_gain import NEEDED, MeasuredGain
from registry import units
from registry.model import Longs
from registry.model.placement import PlacementSeries

PLACED = {LIGHT: "#0b6e8f", DARK: "#4cc3ea"}
FLAGGED = {LIGHT: "#b3262d", DARK: "#fbe45b"}
LIMIT = {LIGHT: "#e0672f", DARK: "#f38b21"}
BOUND = {LIGHT: "#111820", DARK: "#f4f6f8"}
IN_ORDER = {LIGHT: "#7a8290", DARK: "#9aa3b2"}
PAIR = {LIGHT: ("#0b6e8f", "#e0a028"), DARK: ("#4cc3ea", "#f3c04a")}
"""Colours of A and B."""

KEY = "By time of saving (UTC): ● present placement · ○ proposed · ▲ regression · ━ certified lower bound."
"""Legend of the marks of `sparkline`."""

_NUMBERS = ("value", "bound", "centre", "limit", "in order")
HEIGHT = 118
"""Height of a sparkline, in pixels."""
DAY = pd.Timedelta(days=1)
"""Least space beside the first and the last placement."""


class Drawing(NamedTuple):
    """A table and its chart, for ``st.vega_lite_chart``."""

    rows: pd.DataFrame
    spec: dict[str, Any]
    """Specification of Vega-Lite 6, without data. It is written out because a page has many such charts and
    Altair needs a quarter of a second to validate one; the tests validate it."""


def sparkline(points: pd.DataFrame, title: str, unit: str, size: float, theme: str) -> Drawing:
    """Return a small chart of the placements of one application on one cluster over time.

    Args:
        points: Result of `dashboard.pages.trends_data.points`.
        title: Description for screen readers.
        unit: Name and unit of the values.
        size: Size of that unit in base units.
    """
    rows = points.copy()
    for name in _NUMBERS:
        rows[name] = rows[name] / size
    marks, present = _marks(theme), rows["role"] == "present"
    top_value = float(np.nanmax(rows[["value", "bound", "limit"]].to_numpy(float), initial=0.0))

    def layer(field: str, only: str, mark: dict[str, Any], **more: Any) -> dict[str, Any]:
        axis = {"tickCount": 3, "title": None, "grid": False}
        y = {"field": field, "type": "quantitative", "scale": {"domain": [0, 1.05 * top_value]}, "axis": axis}
        return {"transform": [{"filter": only}], "mark": mark, "encoding": {"y": y, **more}}

    group = {"field": "group", "type": "nominal"}
    top = {"y2": {"field": "centre"}, "detail": group}
    drawn = [
        ("limit", layer("limit", _known("limit"), marks["band"], **top)),
        ("value", layer("value", "datum.role == 'present'", marks["line"], detail=group), present),
        ("bound", layer("bound", _known("bound"), marks["bound"])),
        ("value", layer("value", "datum.role != 'present'", marks["proposed"]), ~present),
        ("value", layer("value", "datum.role == 'present'", marks["ran"]), present),
        ("value", layer("value", "datum.flagged", marks["flagged"]), rows["flagged"]),
    ]
    encoding = {"x": _over_time(rows["at"]), "tooltip": _tooltip(unit)}
    about = {"description": f"{title}: {unit} over time", "height": HEIGHT, "width": "container"}
    return Drawing(rows, {**about, "encoding": encoding, "layer": _with_data(rows, drawn)})


def dumbbell(costs: pd.DataFrame, theme: str) -> alt.LayerChart:
    """Return the costs of placements A and B, each relative to the larger, joined by a line.

    Args:
        costs: Result of `dashboard.pages.trends_data.relative`.
    """
    order = list(dict.fromkeys(costs["cost"]))
    texts = costs.groupby("cost", sort=False)["shown"].agg(" → ".join).rename("both").reset_index()
    y = alt.Y("cost:N", title=None, sort=order, axis=None)
    axis = alt.Axis(format="%", tickCount=3, grid=False)
    x = alt.X("share:Q", title="share of the larger", scale=alt.Scale(domain=[0, 1], nice=False), axis=axis)
    base = alt.Chart(costs).encode(
        y=y, x=x, tooltip=[alt.Tooltip(f"{name}:N") for name in ("cost", "which", "shown")]
    )
    span = base.mark_line(color=INK[theme], opacity=0.4, strokeWidth=3).encode(detail=alt.Detail("cost:N"))
    legend = alt.Legend(orient="top", title=None)
    shapes = alt.Scale(domain=["A", "B"], range=["circle", "diamond"])
    shape = alt.Shape("which:N", scale=shapes, legend=legend)
    dots = base.mark_point(filled=True, size=130, opacity=1).encode(
        color=_pair("which", ["A", "B"], theme, legend=True), shape=shape
    )
    names = alt.Chart(texts.assign(text=texts["cost"] + ": " + texts["both"])).mark_text(
        align="left", baseline="bottom", dy=-9, color=INK[theme]
    )
    labels = names.encode(y=y, x=alt.XDatum(0), text=alt.Text("text:N"))
    about = "Costs of placements A and B, each relative to the larger of the two."
    height = 52 * len(order) + 60
    return layers(span, dots, labels).properties(height=height, width="container", description=about)


def two_clusters(rows: pd.DataFrame, clusters: tuple[str, str], theme: str) -> alt.LayerChart:
    """Return a chart of applications on two clusters by the distance of their placements from the bound.

    Args:
        rows: Result of `dashboard.pages.trends_data.applications_table`.
    """
    y = alt.Y("application:N", title=None, axis=alt.Axis(ticks=False, labelLimit=220))
    x = alt.X("over bound:Q", title="worst link / lower bound (median)", scale=alt.Scale(zero=False))
    base = alt.Chart(rows[rows["over bound"].notna()]).encode(x=x, y=y)
    span = base.mark_line(color=INK[theme], opacity=0.4).encode(detail=alt.Detail("application:N"))
    dots = base.mark_point(filled=True, size=110, opacity=1).encode(
        color=_pair("cluster", list(clusters), theme, legend=True),
        shape=alt.Shape("cluster:N", scale=alt.Scale(domain=list(clusters), range=["circle", "diamond"])),
        tooltip=[
            alt.Tooltip("application:N"),
            alt.Tooltip("cluster:N"),
            alt.Tooltip("placements:Q"),
            alt.Tooltip("over bound:Q", format=".3~f", title="over bound (times)"),
            alt.Tooltip("over in order:Q", format=".3~f", title="over in order (times)"),
        ],
    )
    height = 30 * max(rows["application"].nunique(), 2)
    title = "Distance from best, by application"
    return layers(span, dots).properties(title=title, height=height, width="container")


def _over_time(times: pd.Series) -> dict[str, Any]:
    """Return the axis of times, with its ends: Vega would warn if it had none before the data are there."""
    first, last = times.min(), times.max()
    space = max((last - first) / 20, DAY)
    ends = [time.strftime("%Y-%m-%dT%H:%M:%SZ") for time in (first - space, last + space)]
    return {
        "field": "at",
        "type": "temporal",
        "title": None,
        "scale": {"type": "utc", "domain": ends},
        "axis": {"tickCount": 3, "format": "%d %b", "labelOverlap": True, "grid": False},
    }


def _tooltip(unit: str) -> list[dict[str, Any]]:
    """Return the fields that are shown for the mark under the pointer."""
    numbers = {"value": unit, "bound": "lower bound", "limit": "control limit"}
    at = {"field": "at", "type": "temporal", "title": "time (UTC)", "format": "%Y-%m-%d %H:%M:%S"}
    return [
        *(
            {"field": name, "type": "quantitative", "title": title, "format": ".4~g"}
            for name, title in numbers.items()
        ),
        at | {"formatType": "time"},
        *({"field": name, "type": "nominal"} for name in ("placement", "profile", "job", "role", "strategy")),
    ]


def _marks(theme: str) -> dict[str, dict[str, Any]]:
    """Return the mark of each kind of value."""
    placed, point = PLACED[theme], {"type": "point", "filled": True}
    return {
        "band": {
            "type": "area",
            "interpolate": "step-after",
            "color": LIMIT[theme],
            "fillOpacity": 0.35,
            "line": {"color": LIMIT[theme], "strokeDash": [4, 3], "strokeWidth": 1.2},
        },
        "line": {"type": "line", "strokeWidth": 1, "opacity": 0.5, "color": placed},
        "bound": {"type": "tick", "orient": "horizontal", "thickness": 1.5, "size": 8, "color": BOUND[theme]},
        "proposed": {"type": "point", "filled": False, "size": 24, "strokeWidth": 1.2, "color": placed},
        "ran": point | {"size": 22, "opacity": 1, "color": placed},
        "flagged": point | {"shape": "triangle-up", "size": 90, "opacity": 1, "color": FLAGGED[theme]},
    }


def _with_data(rows: pd.DataFrame, drawn: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return the layers that have rows: Vega warns of layers without.

    Args:
        drawn (sequence of (str, dict) or (str, dict, bool[n])): Column that a layer needs, the layer, and the
            rows that it draws (default: all).
    """
    return [
        layer
        for column, layer, *only in drawn
        if bool((np.isfinite(rows[column]) & (only[0] if only else True)).any())
    ]


def _known(column: str) -> str:
    """Return a filter for rows with a number in a column; one table serves all layers."""
    return f"isValid(datum['{column}']) && isFinite(datum['{column}'])"


def _pair(field: str, domain: list[str], theme: str, *, legend: bool = False) -> alt.Color:
    scale = alt.Scale(domain=domain, range=list(PAIR[theme]))
    return alt.Color(
        f"{field}:N", scale=scale, legend=alt.Legend(orient="top", title=None) if legend else None
    )


POINTS = 150
"""Maximum number of placements in a chart: the newest ones."""
MOST_FLAGGED = 50
"""Maximum number of older regressions that a chart also shows: the newest of them."""
FACTS = {
    "cluster": "cluster",
    "application": "application",
    "profile": "profile_name",
    "profile id": "profile",
    "ranks": "ranks",
    "job": "job",
    "role": "role",
    "strategy": "strategy",
    "objective": "objective",
    "routing": "routing",
    "snapshot": "snapshot",
    "tables": "tables",
    "hosts and slots": "allocation",
    "ranks on hosts": "order",
    "code version": "code_version",
}
"""Facts of a placement apart from its costs, and their columns of the series."""


class Panel(NamedTuple):
    """A chart: the placements of an application on a cluster."""

    application: str
    cluster: str
    rows: Longs
    """int64[k]: Rows of the series, ascending."""
    flagged: int
    """Number of regressions among them."""

    @property
    def title(self) -> str:
        """Text for both names."""
        return f"{self.application} on {self.cluster}"


def panels(series: PlacementSeries, quality: Quality, rows: Longs) -> list[Panel]:
    """Return a chart for each application on each cluster: the newest regression first, then the newest.

    Args:
        rows (int64[k]): Rows of the series to show, ascending.
    """
    grouped: dict[tuple[str, str], list[int]] = {}
    for row in rows.tolist():
        grouped.setdefault((series.application[row], series.cluster[row]), []).append(row)
    found = []
    for (application, cluster), mine in grouped.items():
        flagged = np.flatnonzero(quality.regression[mine])
        newest = mine[int(flagged[-1])] if len(flagged) else -1
        name = application or "unknown application"
        panel = Panel(name, cluster, np.asarray(mine, np.int64), len(flagged))
        found.append(((-newest, -mine[-1], panel.title), panel))
    return [panel for _, panel in sorted(found, key=lambda one: one[0])]


def points(series: PlacementSeries, quality: Quality, rows: Longs, metric: str) -> pd.DataFrame:
    """Return the newest placements of a chart and the newest older regressions, in base units.

    Unknown values are NaN. Placements of one ``group`` have one limit.
    """
    older, newest = rows[:-POINTS], rows[-POINTS:]
    mine = np.r_[older[quality.regression[older]][-MOST_FLAGGED:], newest]
    bound = _values(series, f"bound_{metric}", mine)
    judged = bound if metric == "congestion_seconds" else np.full(len(mine), np.nan)
    return pd.DataFrame(
        {
            "at": pd.to_datetime(series.recorded_at[mine], utc=True),
            "value": _values(series, metric, mine),
            "bound": bound,
            "centre": quality.centre[mine] * judged,
            "limit": quality.limit[mine] * judged,
            "in order": _values(series, f"in_order_{metric}", mine),
            "flagged": quality.regression[mine],
            "role": _values(series, "role", mine),
            "placement": _values(series, "id", mine),
            "profile": _values(series, "profile_name", mine),
            "group": [f"{series.profile_name[k]} {series.ranks[k]} {series.role[k]}" for k in mine.tolist()],
            "job": _values(series, "job", mine),
            "strategy": _values(series, "strategy", mine),
        }
    )


def placements_table(series: PlacementSeries, quality: Quality, rows: Longs) -> pd.DataFrame:
    """Return placements with their costs in base units, in the order of the rows."""

    def columns(*titles: str) -> dict[str, Any]:
        return {title: _values(series, FACTS[title], rows) for title in titles}

    return pd.DataFrame(
        {
            "placement": _values(series, "id", rows),
            "saved at (UTC)": series.recorded_at[rows].astype("datetime64[s]"),
            **columns("application", "cluster", "job", "role", "ranks"),
            **{about.title: _values(series, metric, rows) for metric, about in METRICS.items()},
            "over bound": quality.ratio[rows],
            "regression": quality.regression[rows],
            **columns("profile", "strategy", "objective", "routing", "snapshot", "code version"),
        }
    )


def option_text(series: PlacementSeries, row: int) -> str:
    """Return the text of a placement in a list to choose from."""
    cost = units.short(float(series.congestion_seconds[row]), units.SECONDS)
    job = f"job {series.job[row]}" if series.job[row] else ""
    parts = (series.application[row], job, cost, series.strategy[row], moment_of(series, row), series.id[row])
    return " · ".join(part for part in parts if part)


def moment_of(series: PlacementSeries, row: int) -> str:
    """Return the time at which a placement was saved, as text in UTC."""
    return str(series.recorded_at[row].astype("datetime64[s]")).replace("T", " ") + " UTC"


def facts_table(series: PlacementSeries, pair: Sequence[int]) -> pd.DataFrame:
    """Return two placements side by side: costs with units, then provenance; differences are marked."""
    rows = np.asarray(pair, np.int64)
    lines: list[tuple[str, list[str]]] = []
    for metric, about in METRICS.items():
        lines.append((about.title, [_cost(value, about.base) for value in getattr(series, metric)[rows]]))
        bounds = _values(series, f"bound_{metric}", rows)
        if np.isfinite(bounds).any():
            lines.append((f"{about.title}, lower bound", [_cost(value, about.base) for value in bounds]))
    lines += [(fact, [str(getattr(series, column)[row]) for row in pair]) for fact, column in FACTS.items()]
    lines.insert(0, ("saved at", [moment_of(series, row) for row in pair]))
    return pd.DataFrame(
        {
            "fact": [fact for fact, _ in lines],
            "A": [both[0] for _, both in lines],
            "B": [both[1] for _, both in lines],
            "differs": ["≠" if both[0] != both[1] else "" for _, both in lines],
        }
    )


def relative(series: PlacementSeries, pair: Sequence[int]) -> pd.DataFrame:
    """Return the costs of two placements: ``cost``, ``which``, ``share`` (of the larger) and ``shown``."""
    rows = []
    for metric, about in METRICS.items():
        values = [float(getattr(series, metric)[row]) for row in pair]
        top = max(values, default=0.0) or 1.0
        rows += [
            (about.title, which, value / top, units.short(value, about.base))
            for which, value in zip("AB", values, strict=True)
        ]
    return pd.DataFrame(rows, columns=["cost", "which", "share", "shown"])


def applications_table(series: PlacementSeries, clusters: Sequence[str]) -> pd.DataFrame:
    """Return the placements of each application on each of the clusters: their number and median quality."""
    rows = [
        (
            one.application or "unknown application",
            one.cluster,
            one.placements,
            one.over_bound,
            one.over_in_order,
        )
        for one in by_application(series)
        if one.cluster in clusters
    ]
    return pd.DataFrame(rows, columns=["application", "cluster", "placements", "over bound", "over in order"])


def _values(series: PlacementSeries, name: str, rows: Longs) -> Any:
    """Return some rows of a column: a list of texts or an array of numbers; NaN without such a column."""
    column = getattr(series, name, None)
    if isinstance(column, tuple):
        return [column[row] for row in rows.tolist()]
    return np.full(len(rows), np.nan) if column is None else column[rows]


def _cost(value: float, base: str) -> str:
    return units.short(float(value), base) if np.isfinite(value) else ""


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
