"""The dashboard application: connects, checks access, and draws the page that the browser requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

import streamlit as st

from dashboard.pages import (
    circuits,
    data,
    fabric,
    job,
    jobs,
    overview,
    planner,
    shared_links,
    simulations,
    trends,
)
from dashboard.pages.overview import cached_findings, cached_overview, recent_counters, recent_regressions
from dashboard.shared import bar
from dashboard.shared import cards as outside
from dashboard.shared.bar import link_to
from dashboard.shared.caching import Clusters, cached_clusters, drawing
from dashboard.shared.cards import plain, show_error, show_login, show_nobody
from dashboard.shared.controls import tabbed
from dashboard.shared.search import search
from dashboard.shared.searches import Searches
from dashboard.shared.viewer import EVERYTHING, NOBODY, Access, Site, current, logged_in
from mapping.checks.finding import ErrorLimits
from registry.errors import AlmanacError, DatabaseUnavailable
from registry.registry import Registry
from registry.store.fabrics import ClusterInfo

ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="#0b6e8f" stroke="#0b6e8f">
<path d="M8 8 6 25M8 8 16 25M24 8 16 25M24 8 26 25M8 8 26 25M24 8 6 25" fill="none" stroke-width="1.5"/>
<path d="M5 5h6v6H5zM21 5h6v6h-6z"/><circle cx="6" cy="25" r="3"/><circle cx="16" cy="25" r="3"/>
<circle cx="26" cy="25" r="3"/></svg>"""
"""Icon of the browser tab, included here because Streamlit loads named icons from another host."""
STYLE = """<style>
.stMainBlockContainer { padding-top: 0.5rem; padding-left: 1.25rem; padding-right: 1.25rem }
.stAppHeader { background: none; pointer-events: none }
.stAppHeader > * { pointer-events: none }
.stAppHeader button { pointer-events: auto }
.st-key-bar { padding-right: 2.5rem }
.stApp:has([data-testid="stExpandSidebarButton"]) .st-key-bar { padding-left: 2rem }
.stHeading :is(h2, h3) { padding: 0 }
[data-testid^="stBaseButton-primary"]:not(:disabled), [data-testid^="stBaseButton-primary"]:not(:disabled) *,
.stMultiSelect span[title], .stMultiSelect span[title] + * { color: light-dark(#fff, #06222d) }
.stVerticalBlock[class*="st-key-rows"] a > :has([data-testid="stIconMaterial"]) { display: none }
.stVerticalBlock[class*="st-key-rows"] a { padding: 0; height: auto; min-height: 1.5rem }
.stVerticalBlock[class*="st-key-rows"] a :is(span, p) { white-space: normal; overflow: visible }
.stVerticalBlock[class*="st-key-rows-events"] a :is(span, p) { white-space: nowrap; overflow: hidden }
.stVerticalBlock[class*="st-key-rows-events"] a p { text-overflow: ellipsis }
</style>"""
"""Style without which Streamlit leaves wide margins, and writes white on the light buttons of a dark page."""
SIDEBAR = 200
"""Width of the navigation in pixels, the smallest that Streamlit allows."""

_TRIED_AGAIN = "tried again"

Draw = Callable[[Registry, Site], None]


class Entry(NamedTuple):
    """A page of the navigation."""

    title: str
    draw: Draw
    """Draws the page below the bar."""
    icon: str
    all_clusters: bool = False
    """True if the page can show all clusters together."""

    @property
    def name(self) -> str:
        """Title in lower case: the page's address, and its field of `Site`."""
        return self.title.lower()


def _jobs(registry: Registry, site: Site) -> None:
    """Draw a job or placement if the address names one, else the list of jobs."""
    if {"job", "placement"} & set(st.query_params):
        job.draw(registry, site)
    else:
        _tabs({"jobs": ("Jobs", jobs.draw), "shared": ("Shared links", shared_links.draw)})(registry, site)


def _tabs(tabs: Mapping[str, tuple[str, Draw]]) -> Draw:
    """Return a function that draws the tab that the address names."""

    def draw(registry: Registry, site: Site) -> None:
        with tabbed("tab", {name: label for name, (label, _) in tabs.items()}) as name:
            tabs[name][1](registry, site)

    return draw


SECTIONS: Mapping[str, tuple[Entry, ...]] = {
    "Now": (
        Entry("Overview", overview.draw, ":material/monitoring:"),
        Entry("Fabric", fabric.draw, ":material/hub:"),
        Entry("Jobs", _jobs, ":material/list:", all_clusters=True),
    ),
    "Improve": (
        Entry(
            "Planner",
            _tabs({"changes": ("Changes", planner.draw), "circuits": ("Circuits", circuits.draw)}),
            ":material/conversion_path:",
        ),
        Entry(
            "Trends",
            _tabs(
                {
                    "applications": ("Applications", trends.draw),
                    "simulations": ("Simulations", simulations.draw),
                }
            ),
            ":material/show_chart:",
            all_clusters=True,
        ),
    ),
    "System": (Entry("Data", data.draw, ":material/input:", all_clusters=True),),
}
"""The pages of each section of the navigation."""
PAGES = tuple(entry for entries in SECTIONS.values() for entry in entries)
"""All pages in the order of the navigation; the first is the start page."""


def run(
    connect: Callable[[], Registry],
    access: Callable[[], Access] = lambda: EVERYTHING,
    limits: Callable[[], ErrorLimits] = ErrorLimits,
) -> None:
    """Draw the page that the browser requests.

    Args:
        connect: Opens the registry; called once per process, and again after the database connection was
            lost.
        access: Returns who may see what; called for every page.
        limits: Returns the growth of error counters from which ports are reported.
    """
    wall = bar.on_wall()
    st.set_page_config(
        "Fabric Almanac", ICON, layout="wide", initial_sidebar_state="collapsed" if wall else SIDEBAR
    )
    st.html(STYLE)
    try:
        allowed = access()
        viewer, login = current(allowed), logged_in(allowed)
    except AlmanacError as error:
        show_error(error)
        return

    def page(entry: Entry) -> st.Page:
        def body() -> None:
            st.set_page_config(f"{entry.title} · Fabric Almanac")
            if viewer is None:
                show_nobody(login)
            else:
                _page(connect, entry, site)
            if login is not None:
                show_login(login)

        first = entry is PAGES[0]
        path = "start" if first else entry.name  # the start page has no path, but reserves one
        return st.Page(body, title=entry.title, icon=entry.icon, url_path=path, default=first)

    pages = {entry.name: page(entry) for entry in PAGES}
    site = Site(**pages, viewer=viewer or NOBODY, searches=_searches(connect), limits=limits())
    shown = {section: [pages[entry.name] for entry in entries] for section, entries in SECTIONS.items()}
    st.navigation(shown, position="hidden" if wall else "sidebar", expanded=True).run()


def prepare(connect: Callable[[], Registry], limits: Callable[[], ErrorLimits] = ErrorLimits) -> None:
    """Read what the first page shows and keep it for all viewers; errors are left to the page.

    Args:
        connect, limits: As in `run`.
    """
    with suppress(AlmanacError):
        _prepared(connect, limits)


@st.cache_resource(show_spinner=False)  # no spinner of a function called here either: there is no browser
def _prepared(_connect: Callable[[], Registry], _limits: Callable[[], ErrorLimits]) -> None:
    registry = _registry(_connect)
    cached_clusters(registry)
    view = cached_overview(registry, None)
    if view.live is not None:
        drawing(view.live.running.snapshot.id, view.live.fabric, registry)
        limits = _limits()
        cached_findings(registry, view, limits)
        recent_counters(registry, view, bar.RANGES[bar.DEFAULT_RANGE][1], limits)
        recent_regressions(registry, view, None)


def _page(connect: Callable[[], Registry], entry: Entry, site: Site) -> None:
    """Draw the bar and the page below it, which is drawn again every `bar.refresh_seconds`."""
    outside.begin(entry.title)
    infos = _clusters(connect).infos
    ages = bar.draw(entry.title, list(infos), all_clusters=entry.all_clusters)
    text, cluster = bar.searched(), bar.chosen_cluster(list(infos))
    if text and cluster is not None:
        _show(connect, lambda registry, site: _found(registry, infos[cluster], text, site), site)
    others = st.container()

    @st.fragment(run_every=bar.refresh_seconds())
    def body() -> None:
        with ages:
            found = _clusters(connect)
            bar.ages(found.infos, found.read_at)
        _show(connect, entry.draw, site)

    body()
    with others:
        outside.draw()


def _found(registry: Registry, cluster: ClusterInfo, text: str, site: Site) -> None:
    """Open what a search found, or list it if there are several."""
    hits = search(registry, cluster, text, site.viewer)
    if len(hits) == 1:
        st.switch_page(getattr(site, hits[0].page), query_params=dict(hits[0].address))
    with st.container(border=True, key="found"):
        if not hits:
            st.text(f"Nothing in {cluster.name} has this name, GUID or id: {text}")
        for hit in hits:
            link_to(getattr(site, hit.page), f"{hit.kind}: {plain(hit.label)}", **hit.address)


def _clusters(connect: Callable[[], Registry]) -> Clusters:
    """Return the clusters; none if they cannot be read, which the page then reports."""
    try:
        return cached_clusters(_registry(connect))
    except AlmanacError:
        return Clusters(infos={}, read_at=datetime.now(UTC))


def _show(connect: Callable[[], Registry], draw: Draw, site: Site) -> None:
    """Draw a page; show expected errors as messages, and reconnect once if the connection was lost."""
    try:
        draw(_registry(connect), site)
    except DatabaseUnavailable as error:
        _registry.clear()
        if not st.session_state.pop(_TRIED_AGAIN, False):
            st.session_state[_TRIED_AGAIN] = True
            st.rerun()
        show_error(error)
    except AlmanacError as error:
        show_error(error)
    else:
        st.session_state.pop(_TRIED_AGAIN, None)


@st.cache_resource(show_spinner="Opening the registry ...", on_release=Registry.close)
def _registry(_connect: Callable[[], Registry]) -> Registry:
    return _connect()


@st.cache_resource(show_spinner=False, on_release=Searches.close)
def _searches(_connect: Callable[[], Registry]) -> Searches:
    """Return the background searches of all sessions."""
    return Searches(_connect)
