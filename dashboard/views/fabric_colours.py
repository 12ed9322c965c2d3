"""Colours of the fabric page's map: measured and estimated load, their difference, errors, capacity."""

from __future__ import annotations

from dashboard.figures import colouring
from dashboard.figures.colouring import Colouring
from dashboard.queries.fabric import FabricView
from mapping.traffic.ports import CounterHistory
from registry import units

MEASURED, ESTIMATED, DIFFERENCE = "measured", "estimated", "difference"
LOADS = {MEASURED: "measured", ESTIMATED: "estimated", DIFFERENCE: "difference"}
ERRORS, CAPACITY, CHANGES = "errors", "capacity", "changes"
LOAD = "load"
OLD_NAMES = {"predicted": ESTIMATED, LOAD: MEASURED}
"""Colours of old addresses."""
NOTHING_RUNS = (
    "No running job has known traffic, so capacities are shown. Attach a profile with "
    "`almanac job attach JOB PROFILE`."
)
NOTHING_COUNTED = (
    "Fewer than two counter sweeps until then, so capacities are shown. Ingest sweeps with "
    "`almanac ingest COUNTERS --cluster NAME`."
)


def default_colour(view: FabricView) -> str:
    """Return the default: the measured load, else the estimated one, else the capacity."""
    if view.rates is not None and view.opened is None:
        return MEASURED
    return CAPACITY if view.link_bytes is None else ESTIMATED


def colouring_of(view: FabricView, colour: str, counters: CounterHistory | None) -> tuple[Colouring, str]:
    """Return colours, and the reason if they are not the requested ones."""
    links = view.fabric.links
    capacity = colouring.capacity("Capacity of the cables", "Each direction", links.capacity)
    if colour == CAPACITY:
        return capacity, ""
    if colour == ERRORS:
        return (capacity, NOTHING_COUNTED) if counters is None else (_errors(counters), "")
    if colour != MEASURED and view.seconds is None:
        return capacity, NOTHING_RUNS
    share = view.estimated_share if colour in (ESTIMATED, DIFFERENCE) else None
    if colour == ESTIMATED:
        assert view.seconds is not None
        whose = "a placement" if view.live is None else units.counted(len(view.live.shared), "running job")
        if share is not None:
            title = f"Estimated load of {whose} by times per iteration, the worse direction"
            return colouring.share(title, "Share of capacity", share), ""
        title = f"Estimated load of {whose}: time of each link, the worse direction"
        return colouring.load(title, "Seconds per iteration", view.seconds), ""
    if view.rates is None:
        return capacity, NOTHING_COUNTED
    span = f"{view.rates.start:%Y-%m-%d %H:%M} to {view.rates.end:%H:%M} UTC"
    if colour == MEASURED:
        title = f"Measured load, the worse direction, {span}"
        return colouring.share(title, "Share of capacity", view.rates.share), ""
    if share is not None:
        title = f"Measured minus estimated load by times per iteration, {span}"
        return colouring.difference(title, "Share of capacity", view.rates.share - share), ""
    against = view.against
    if against is None:
        return capacity, "No traffic was measured on the links of the jobs, so capacities are shown."
    scale = f"at {against.iterations_per_second:.3g} iterations per second"
    title = f"Measured minus estimated load {scale}, {span}"
    return colouring.difference(title, "Share of capacity", against.difference), ""


def _errors(counters: CounterHistory) -> Colouring:
    """Return the colours by new errors, with the period in the title."""
    grown = counters.errors.grown
    span = f"{grown.start:%Y-%m-%d %H:%M} to {grown.end:%Y-%m-%d %H:%M} UTC"
    return colouring.errors(f"New errors of ports, {span}", "Worse port of each cable", counters.excess)
