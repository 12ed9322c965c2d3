"""What a job's page shows: the job, its placement and the one beside it, costs, communication, hosts."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st
from PIL import Image

from dashboard.shared import door
from dashboard.shared.caching import CACHED
from dashboard.shared.cards import DARK, HEAT, INK, LIGHT, SERIES_COLOURS, layers
from dashboard.shared.controls import choose, named
from dashboard.shared.door import cached_job
from dashboard.shared.names import placement_text
from dashboard.shared.viewer import Viewer
from mapping.traffic.job_loads import Neighbours
from registry import units
from registry.errors import UnknownName
from registry.model import Fabric, Floats
from registry.registry import Registry
from registry.store.job_lists import JobFile, JobFilter
from registry.store.placement_rows import PRESENT, StoredPlacementInfo
from registry.store.placements import OpenPlacement

GAUGE = {
    "best possible": ("#1a7f37", 1),
    "found": ("#0b6e8f", -1),
    "now": ("#b3262d", 1),
    "in order": ("#b3262d", 1),
    "random": ("#5f6775", -1),
}
"""Colour of each value of a gauge, and the side of its text: 1 below the line, -1 above it."""
GAUGE_HEIGHT = 76
"""Height of a gauge, in pixels."""


def gauge(points: Mapping[str, float], theme: str) -> alt.LayerChart:
    """Return a line from the best possible to a random placement, with a job's placements on it.

    Args:
        points: Result of `dashboard.shared.names.JobCosts.points`: seconds by name of `GAUGE`.
    """
    low, high = min(points.values()), max(points.values())
    edge = 0.16 * (high - low) or 0.16 * high or 1.0
    rows = pd.DataFrame({"name": list(points), "seconds": list(points.values())})
    rows["text"] = [f"{name} {units.short(value, units.SECONDS)}" for name, value in points.items()]
    rows["above"] = [GAUGE[name][1] < 0 for name in points]
    scale = alt.Scale(domain=[low - edge, high + edge], nice=False, zero=False)
    x = alt.X("seconds:Q", axis=None, scale=scale)
    colour = alt.Color(
        "name:N",
        legend=None,
        scale=alt.Scale(
            domain=list(GAUGE),
            range=[colour if theme == LIGHT else INK[DARK] for colour, _ in GAUGE.values()],
        ),
    )
    base = alt.Chart(rows).encode(x=x, tooltip=[alt.Tooltip("text:N", title="worst link")])
    span = alt.Chart(pd.DataFrame({"seconds": [low], "end": [high]})).encode(x=x, x2=alt.X2("end:Q"))
    parts = [span.mark_rule(strokeWidth=6, color=EMPTY[theme])]
    now = points.get("now", points.get("in order"))
    if now is not None and "found" in points:
        gain = pd.DataFrame({"seconds": [points["found"]], "end": [now]})
        coloured = alt.Chart(gain).encode(x=x, x2=alt.X2("end:Q"))
        parts.append(coloured.mark_rule(strokeWidth=6, color=SERIES_COLOURS[theme][2]))
    parts.append(base.mark_circle(size=150, opacity=1).encode(color=colour))
    for above, dy in ((True, -18), (False, 18)):
        texts = base.transform_filter(alt.FieldEqualPredicate(field="above", equal=above))
        parts.append(texts.mark_text(dy=dy, fontSize=13).encode(text=alt.Text("text:N"), color=colour))
    about = ", ".join(rows["text"])
    return layers(*parts).properties(
        height=GAUGE_HEIGHT, width="container", description=f"Time of the worst link: {about}"
    )


def communication_matrix(matrix: Floats, ranks: int, theme: str) -> alt.LayerChart:
    """Return a picture of the bytes from rank (down) to rank (across), logarithmic.

    Args:
        matrix (float64[k, k]): Result of `dashboard.shared.names.communication`.
    """
    unit = units.unit_for([float(matrix.max(initial=0.0))], units.BYTES)
    sent = matrix[matrix > 0]
    low, high = (float(sent.min()), float(sent.max())) if len(sent) else (1.0, 1.0)
    ramp = list(HEAT[theme][1:])
    corners = pd.DataFrame(
        {"x": [0, ranks], "y": [0, ranks], "bytes": [low / unit.size, max(high, low * 1.001) / unit.size]}
    )
    picture = pd.DataFrame({"url": [_png(matrix, low, high, ramp)], "x": 0, "x2": ranks, "y": 0, "y2": ranks})
    span = alt.Scale(domain=[0, ranks], nice=False)
    down = alt.Scale(domain=[ranks, 0], nice=False)
    image = (
        alt.Chart(picture)
        .mark_image(aspect=False, smooth=False, align="left", baseline="top")
        .encode(
            x=alt.X("x:Q", scale=span, title="to rank", axis=alt.Axis(grid=False)),
            x2=alt.X2("x2"),
            y=alt.Y("y:Q", scale=down, title="from rank", axis=alt.Axis(grid=False)),
            y2=alt.Y2("y2"),
            url=alt.Url("url:N"),
        )
    )
    scale = (
        alt.Chart(corners)
        .mark_point(opacity=0)
        .encode(
            x=alt.X("x:Q", scale=span),
            y=alt.Y("y:Q", scale=down),
            color=alt.Color(
                "bytes:Q", title=f"sent ({unit.name})", scale=alt.Scale(type="log", range=ramp, nice=False)
            ),
        )
    )
    side = 430
    return layers(image, scale).properties(title="Bytes between ranks", width=side, height=side)


def _png(matrix: Floats, low: float, high: float, ramp: Sequence[str]) -> str:
    """Return the matrix as a PNG image in a data URL; transparent if no bytes are sent."""
    stops = np.asarray([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in ramp], float)
    sent = matrix > 0
    spread = np.log(high / low) if high > low else 1.0
    share = np.log(np.where(sent, matrix, low) / low) / spread if high > low else np.ones(matrix.shape)
    spots = np.linspace(0, 1, len(stops))
    channels = [np.interp(share, spots, stops[:, c]) for c in range(3)]
    pixels = np.dstack([*channels, np.where(sent, 255, 0)]).astype(np.uint8)
    data = io.BytesIO()
    Image.fromarray(pixels, "RGBA").save(data, "PNG")
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode("ascii")


RANKS = {
    LIGHT: ("#440154", "#3b528b", "#21918c", "#5ec962", "#d9d21d"),
    DARK: ("#7e4a9e", "#5b78c7", "#2fb3ad", "#7fdc7f", "#fde725"),
}
"""Colours from the first rank to the last: viridis, lighter on dark pages, its end darker on light ones."""
EMPTY = {LIGHT: "#e6e9ee", DARK: "#343944"}
"""Colour of the job's hosts without ranks, and of the outline of other hosts."""
WIDTH, HEIGHT = 290, 840
"""Maximum size of all cells, in pixels."""
CELL, NAMED_ROW = (4.0, 18.0), 14.0
"""Minimum and maximum side of a cell, and minimum height of a row with a name, in pixels."""


def hosts_figure(
    rows: tuple[str, ...], cells: pd.DataFrame, title: str, ranks: int, theme: str
) -> alt.VConcatChart:
    """Return the hosts of a job: one cell per host, one row per switch.

    Args:
        rows: Rows of `dashboard.shared.names.HostCells`.
        cells: Result of `dashboard.shared.names.with_ranks`.
        ranks: Number of ranks of the job, the end of the colour ramp.
    """
    columns, named = int(cells["place"].max()) + 1, len(rows) * NAMED_ROW <= HEIGHT
    low, high = CELL
    width = min(max(WIDTH / columns, low), high)
    height = min(max(HEIGHT / len(rows), low), high)
    names = alt.Axis(labelLimit=170, ticks=False, domain=False, labelOverlap=False, labelFontSize=11)
    base = alt.Chart(cells).encode(
        x=alt.X("place:O", axis=None, scale=alt.Scale(domain=list(range(columns)), paddingInner=0.12)),
        y=alt.Y(
            "row:N",
            title=None,
            axis=names if named else None,
            scale=alt.Scale(domain=list(rows), paddingInner=0.12),
        ),
        tooltip=[
            alt.Tooltip("host:N"),
            alt.Tooltip("row:N", title="on"),
            alt.Tooltip("count:Q", title="ranks of this job"),
            alt.Tooltip("ranks:N", title="these ranks"),
        ],
    )
    mine = alt.FieldEqualPredicate(field="mine", equal=True)
    taken = alt.FieldGTPredicate(field="count", gt=0)
    others = base.mark_rect(fillOpacity=0, stroke=EMPTY[theme], strokeWidth=1)
    free = base.transform_filter(mine).mark_rect(fill=EMPTY[theme], stroke=INK[theme], strokeWidth=0.5)
    colour = alt.Color(
        "middle:Q",
        title="median rank",
        scale=alt.Scale(domain=[0, max(ranks - 1, 1)], range=list(RANKS[theme])),
        legend=alt.Legend(orient="bottom", direction="horizontal", gradientLength=200, titleLimit=260),
    )
    used = base.transform_filter(taken).mark_rect().encode(color=colour)
    drawn = alt.layer(others, free, used).properties(width=columns * width, height=len(rows) * height)
    # inside a concatenation the size applies to the cells alone, without names and legend
    return alt.vconcat(drawn, title=title)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobView:
    """Data of the job page."""

    file: JobFile | None
    """The job with its placements, or None if the placement belongs to no job."""
    opened: OpenPlacement | None = None
    """The placement that is shown, or None if there is none."""
    beside: OpenPlacement | None = None
    """The placement it is compared with, or None for ranks in order."""

    @property
    def beside_name(self) -> str:
        """Name of the compared placement, for use in a sentence."""
        if self.beside is None:
            return "in order"
        stored = self.beside.stored
        return "how it runs" if stored.role == PRESENT else stored.id


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def neighbours(snapshot_id: str, _fabric: Fabric) -> Neighbours:
    """Return which hosts of a snapshot share a switch; computed once."""
    return Neighbours.of(_fabric)


def job_file(registry: Registry, job: str, viewer: Viewer) -> JobFile:
    """Return a job with its placements, by ``CLUSTER/ID`` or by an id found in one cluster.

    Raises:
        UnknownName: No such job, a job that the viewer may not see, or jobs of that id in several clusters.
    """
    cluster, _, name = job.rpartition("/")
    return door.job(registry, name, cluster or None, viewer)


def newest(registry: Registry, viewer: Viewer) -> str | OpenPlacement | None:
    """Return what the page shows by default: a job, a placement that belongs to no job, or None.

    This is the job of the newest placement, or else the newest job: at most two statements.
    """
    latest = door.newest_placement(registry, viewer)
    if latest is not None:
        return key_of(latest) or door.placement(registry, latest.id, viewer)
    rows = door.every_job(registry, JobFilter(), 1, viewer)
    return rows[0].stored.id if rows else None


def owner(registry: Registry, placement: str, viewer: Viewer) -> tuple[OpenPlacement, str | None]:
    """Return a placement by its id, and its job: one statement.

    Raises:
        UnknownName
    """
    opened = door.placement(registry, placement, viewer)
    job = opened.stored.job
    return opened, None if job is None else f"{opened.stored.cluster}/{job}"


def key_of(info: StoredPlacementInfo) -> str | None:
    """Return the job of a placement as written in addresses, or None."""
    return None if info.job is None else f"{info.cluster}/{info.job}"


def shown_first(placements: Sequence[StoredPlacementInfo]) -> str | None:
    """Return the id of the placement that is shown by default; None if there are none.

    It is the best proposed one that can be compared with how the job runs, else the newest one.
    """
    fit = [
        info
        for info in placements
        if info.role != PRESENT and any(one.role == PRESENT for one in comparable(info, placements))
    ]
    best = min(fit, key=lambda info: info.congestion_seconds or math.inf, default=None)
    return best.id if best is not None else placements[0].id if placements else None


def comparable(
    shown: StoredPlacementInfo, placements: Sequence[StoredPlacementInfo]
) -> list[StoredPlacementInfo]:
    """Return the placements that can be compared with one link by link: same profile, same wiring.

    Placements with which the job actually runs come first, then the newest.
    """
    fit = [
        other
        for other in placements
        if other.id != shown.id
        and other.congestion_seconds is not None
        and (other.snapshot, other.profile_id) == (shown.snapshot, shown.profile_id)
    ]
    return sorted(fit, key=lambda other: other.role != PRESENT)


NO_JOB = "none"
"""Value of `job` in the address for a placement without a job."""
IN_ORDER = "in-order"
"""Value of `beside` in the address for a comparison with ranks in order."""


def find_job(registry: Registry, viewer: Viewer) -> JobView | None:
    """Return what the page shows: by default the job of the newest placement.

    None means that the registry holds neither jobs nor placements.

    Raises:
        UnknownName
    """
    job, placement = st.query_params.get("job", "").strip(), st.query_params.get("placement")
    if not job or job == NO_JOB:
        found = _first(registry, viewer, placement)
        if found is None:
            return None
        if isinstance(found, OpenPlacement):
            return _without_job(found, viewer)
        job = found
    file = job_file(registry, job, viewer)
    if placement is not None and all(info.id != placement for info in file.placements):
        cached_job.clear()  # the placement may have been saved just now
        file = job_file(registry, job, viewer)
    st.query_params["job"] = file.stored.id
    infos = {info.id: info for info in file.placements}
    chosen = named("placement", list(infos)) or shown_first(file.placements)
    if chosen is None:
        return JobView(file=file)
    # so that a copied link shows this placement even when there is a newer one
    st.query_params["placement"] = chosen
    options = _compared(infos[chosen], file.placements)
    beside = named("beside", options) or options[0]
    if beside == IN_ORDER:
        return JobView(file=file, opened=door.placement(registry, chosen, viewer))
    opened, other = door.pair(registry, chosen, beside, viewer)
    return JobView(file=file, opened=opened, beside=other)


def draw_choice(view: JobView) -> None:
    """Draw the choice of the placement and of the one that it is compared with."""
    if view.file is None or view.opened is None:
        return
    infos = {info.id: info for info in view.file.placements}
    chosen = view.opened.stored.id
    choose(
        "Placement",
        "placement",
        list(infos),
        show=lambda key: _text(infos[key]),
        resets=["beside"],
    )
    choose(
        "Compare with",
        "beside",
        _compared(infos[chosen], view.file.placements),
        show=lambda key: "ranks in order" if key == IN_ORDER else _text(infos[key]),
    )


def _first(registry: Registry, viewer: Viewer, placement: str | None) -> str | OpenPlacement | None:
    """Return the job, or a placement without a job, if the address does not name a job."""
    if placement is None:
        return newest(registry, viewer)
    opened, job = owner(registry, placement, viewer)
    return job or opened


def _without_job(opened: OpenPlacement, viewer: Viewer) -> JobView:
    """Return the view of a placement without a job, which belongs to no user.

    Raises:
        UnknownName
    """
    if not viewer.sees(""):
        raise UnknownName("placement", opened.stored.id)
    st.query_params["job"] = NO_JOB
    st.query_params["placement"] = opened.stored.id
    return JobView(file=None, opened=opened)


def _compared(shown: StoredPlacementInfo, placements: Sequence[StoredPlacementInfo]) -> list[str]:
    """Return what a placement can be compared with, first the default: how the job runs, or in order."""
    fit = comparable(shown, placements)
    ids = [info.id for info in fit]
    return [*ids, IN_ORDER] if any(info.role == PRESENT for info in fit) else [IN_ORDER, *ids]


def _text(info: StoredPlacementInfo) -> str:
    """Return the text of a placement in a list."""
    return f"{'as it runs' if info.role == PRESENT else 'proposed'} · {placement_text(info)}"
