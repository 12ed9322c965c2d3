"""The selected switch or host of the fabric page: ports, jobs, neighbours, errors, findings, history."""

from __future__ import annotations

import streamlit as st

from dashboard.components.fabric_map import Item
from dashboard.layouts.tree import hosts_below, tiers
from dashboard.queries.fabric import FabricView, cached_device_history
from dashboard.state.site import Site
from dashboard.tables.columns import in_units
from dashboard.tables.ports import device_ports, events_table
from dashboard.tables.sharing import jobs_on_hosts
from dashboard.views import picking
from dashboard.views.fabric_link import close, errors
from dashboard.widgets.controls import tabbed
from dashboard.widgets.messages import plain
from dashboard.widgets.navigation import job_link
from dashboard.widgets.tables import opening_column
from mapping.traffic.names import short_name
from mapping.traffic.ports import CounterHistory
from registry import units
from registry.model import HOST, format_guid
from registry.registry import Registry

TABS = {"ports": "Ports", "jobs": "Jobs", "errors": "Errors", "history": "History"}
TALL = 420
"""Height of long tables in pixels."""


def draw(
    registry: Registry, site: Site, view: FabricView, counters: CounterHistory | None, vertex: int
) -> None:
    """Draw what is known of a switch or host."""
    fabric = view.fabric
    name, host = fabric.names[vertex], fabric.kind[vertex] == HOST
    with st.container(horizontal=True, vertical_alignment="top"):
        short = short_name(name)
        st.header(plain(short), anchor=False, help=plain(name) if short != name else None)
        close(view)
    cables = int(fabric.links.cables[fabric.links.source == vertex].sum())
    guid = int(fabric.guid[vertex])
    facts = [
        "host" if host else "switch",
        units.counted(cables, "cable"),
        format_guid(guid) if guid else "",
    ]
    st.caption(plain(" · ".join(fact for fact in facts if fact)))
    with tabbed("show", TABS) as tab:
        if tab == "ports":
            _ports(view, counters, vertex)
        elif tab == "jobs":
            _jobs(site, view, vertex)
        elif tab == "history":
            _history(registry, view, vertex)
        elif counters is None:
            st.caption("No counters are known.")
        else:
            errors(registry, site, view, counters, counters.ports_of_device(name), [name])


def _ports(view: FabricView, counters: CounterHistory | None, vertex: int) -> None:
    """Draw the ports with their neighbours; a neighbour's name is a button that opens the link to it."""
    rows, table = device_ports(
        view.fabric,
        vertex,
        share=view.share,
        seconds=view.seconds,
        excess=None if counters is None else counters.excess,
    )
    if table.empty:
        st.caption("It has no cables.")
        return
    if "time" in table:
        table = in_units(table, {"time": units.SECONDS})

    def opened(row: int) -> None:
        picking.pick(view.fabric, Item(link=int(rows[row])))

    st.dataframe(
        table,
        hide_index=True,
        column_config={
            "port": st.column_config.TextColumn(width=45),
            "to": opening_column(opened, rows.size, key="neighbour of the table", width=150),
            "use": st.column_config.NumberColumn(width=50, format="percent"),
        },
        height="content" if len(table) <= 11 else TALL,
        key="ports",
    )
    options = dict(zip(rows.tolist(), table["port"] + " → " + table["to"], strict=True))
    st.selectbox(
        "Open a port's link",
        list(options),
        index=None,
        format_func=options.__getitem__,
        key="port to open",
        placeholder="port",
        label_visibility="collapsed",
        on_change=lambda: picking.pick(view.fabric, Item(link=st.session_state["port to open"])),
    )


def _jobs(site: Site, view: FabricView, vertex: int) -> None:
    """Draw the running jobs on a host, or on the hosts below a switch."""
    if view.live is None:
        st.caption("The page shows one placement, not the running jobs.")
        return
    below = hosts_below(view.fabric, tiers(view.fabric), vertex)
    jobs = jobs_on_hosts(view.live, below, site.viewer)
    if jobs.empty:
        st.caption("No running job has hosts here.")
        return
    if view.fabric.kind[vertex] != HOST:
        st.caption(f"{units.counted(len(below), 'host')} below this switch")
    st.dataframe(jobs, hide_index=True, height="content" if len(jobs) <= 8 else 320, key="jobs below")
    for job in jobs["job"].tolist()[:4]:
        job_link(site.jobs, view.cluster.name, job)


def _history(registry: Registry, view: FabricView, vertex: int) -> None:
    """Draw when the cables and the name of a device changed."""
    name = view.fabric.names[vertex]
    found = cached_device_history(registry, view.cluster, view.fabric, vertex, name)
    if found.first_at is not None:
        st.caption(plain(f"First seen: {units.moment_text(found.first_at)}"))
    if not found.events:
        st.caption("Its cables and its name never changed.")
        return
    table = events_table(found)
    st.dataframe(table, hide_index=True, height="content" if len(table) <= 11 else TALL, key="device history")
