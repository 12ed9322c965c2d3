"""Tabs of a job's page: map, links, ranks, communication, runs; and its placement as a launcher's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.map.picture import fabric_map
from dashboard.pages.job_data import JobView, communication_matrix, draw_choice, hosts_figure, neighbours
from dashboard.pages.trends import ABOUT_GAINS as ABOUT
from dashboard.pages.trends import measured_list
from dashboard.shared import cards as outside
from dashboard.shared import link_map as colouring
from dashboard.shared.bar import link_to
from dashboard.shared.caching import cached_in_order, drawing
from dashboard.shared.cards import (
    csv_text,
    download,
    picked_row,
    plain,
    reason_of,
    share_bar,
    show_error,
    theme_of,
)
from dashboard.shared.controls import choose
from dashboard.shared.link_map import LINES_LIMIT, link_map
from dashboard.shared.names import (
    LOADS,
    communication,
    cost_table,
    host_cells,
    loaded_links,
    placements_table,
    ranks_per_host,
    with_ranks,
)
from dashboard.shared.traffic import in_units, pairs_of_placement, pairs_table
from dashboard.shared.viewer import Site
from mapping import launchers
from mapping.traffic.measured_gain import MeasuredGain
from mapping.traffic.names import find_link, full_link, link_text, short_link
from registry import units
from registry.errors import AlmanacError, InvalidPlacement
from registry.model import Evaluation, Fabric, Floats, Ints, Longs
from registry.store.placement_rows import PRESENT
from registry.store.placements import OpenPlacement

HOTTEST = 50
"""Maximum rows of the table of links."""
HEIGHT = 270
"""Height of a map, in pixels."""
PAIRS = 200
"""Maximum rows of the table of rank pairs."""


def draw_maps(view: JobView, opened: OpenPlacement, evaluation: Evaluation) -> None:
    """Draw maps of the links that either placement loads, on one scale; a click selects a link."""
    fabric = opened.snapshot.fabric
    seconds = _seconds(view, opened, evaluation)
    used = np.any([values > 0 for values in seconds.values()], axis=0)
    if not used.any():
        st.info("The ranks send nothing between hosts, so no link is loaded.")
        return
    drawn = drawing(opened.snapshot.id, fabric)
    worst = max(float(values.max()) for values in seconds.values())
    lines = int(used.sum()) <= LINES_LIMIT
    for column, (name, values) in zip(st.columns(len(seconds)), seconds.items(), strict=True):
        link = int(np.argmax(values))
        cost = units.short(float(values[link]), units.SECONDS)
        title = f"{name}: {cost} on {short_link(fabric, link)}"
        colours = colouring.load(title, "Time on each link", values, worst=worst)
        with column:
            fabric_map(
                link_map(fabric, drawn, colours, lines=lines, only=used, height=HEIGHT),
                key=f"where {name}",
                on_pick=lambda item: _pick(fabric, None if item is None else item.link),
            )
    st.caption("The job's own bytes over the capacity of each link, both on one scale.")


def draw_links(view: JobView, opened: OpenPlacement, evaluation: Evaluation) -> None:
    """Draw the worst links of both placements, and the ranks on a selected one."""
    seconds = _seconds(view, opened, evaluation)
    if not any((values > 0).any() for values in seconds.values()):
        st.info("The ranks send nothing between hosts, so no link is loaded.")
        return
    _table(opened, evaluation, seconds)


def _seconds(view: JobView, opened: OpenPlacement, evaluation: Evaluation) -> dict[str, Floats]:
    """Return the time of each link by the name of the placement: the compared one and the shown one."""
    capacity = opened.snapshot.fabric.links.capacity
    own = _name(opened.stored.role)
    other = (
        cached_in_order(opened.stored.id, opened) if view.beside is None else view.beside.stored.evaluation
    )
    if other is None:
        return {own: evaluation.link_bytes / capacity}
    beside = "In order" if view.beside is None else _name(view.beside.stored.role)
    beside = f"{beside}, {view.beside_name}" if beside == own else beside
    return {beside: other.link_bytes / capacity, own: evaluation.link_bytes / capacity}


def _name(role: str) -> str:
    return "How it runs" if role == PRESENT else "Found"


def _table(opened: OpenPlacement, evaluation: Evaluation, seconds: Mapping[str, Floats]) -> None:
    """Draw the worst links of both placements, and the ranks on the link selected here or on a map."""
    fabric = opened.snapshot.fabric
    rows, table = loaded_links(fabric, seconds, evaluation.link_bytes, HOTTEST)
    bases = {**dict.fromkeys(seconds, units.SECONDS), **LOADS}

    def picked() -> None:
        row = picked_row(st.session_state["worst links"], len(rows))
        _pick(fabric, None if row is None else int(rows[row]))

    st.dataframe(
        in_units(table, bases),
        hide_index=True,
        on_select=picked,
        selection_mode="single-row",
        height=260,
        key="worst links",
    )
    download(
        "All loaded links as CSV",
        lambda: csv_text(loaded_links(fabric, seconds, evaluation.link_bytes, None)[1], bases),
        f"{opened.stored.id}-links.csv",
        key="links csv",
    )
    row = _chosen_link(fabric, rows)
    if row is not None:
        _pairs(opened, row)


def _pick(fabric: Fabric, row: int | None) -> None:
    """Store the selected link in the address; other selections change nothing."""
    if row is not None:
        st.query_params["link"] = link_text(fabric, row)


def _chosen_link(fabric: Fabric, rows: Longs) -> int | None:
    """Draw a select box with the worst links, and return the chosen one or None."""
    by_name = {link_text(fabric, row): row for row in rows.tolist()}
    wanted = st.query_params.get("link")
    try:
        if wanted is not None and wanted not in by_name:
            by_name[wanted] = find_link(fabric, wanted)
    except AlmanacError as error:
        st.warning(reason_of(error))
        st.query_params.pop("link")
    name = choose(
        "Ranks on link",
        "link",
        list(by_name),
        show=lambda name: full_link(fabric, by_name[name]),
        empty="select a link on a map or in the table, or choose here",
    )
    return None if name is None else by_name[name]


def _pairs(opened: OpenPlacement, row: int) -> None:
    """Draw the pairs of ranks that load a link."""
    fabric, placement = opened.snapshot.fabric, opened.stored.placement
    try:
        found = pairs_of_placement(opened, row, PAIRS)
    except AlmanacError as error:
        show_error(error)
        return
    if found is None:
        st.info("The profile of this placement is not known.")
        return
    carried = plain(units.short(found.total_bytes, units.BYTES))
    st.markdown(
        f"{found.pairs:,} pairs of ranks send {carried} over {plain(full_link(fabric, row))}; the largest:"
    )
    shown = in_units(pairs_table(fabric, placement, found), {"bytes": units.BYTES})
    st.dataframe(
        shown, hide_index=True, column_config={"part": share_bar("share of link")}, height=220, key="pairs"
    )


_DIALOG = "file dialog"


def menu(opened: OpenPlacement, hosts: Sequence[str]) -> None:
    """Draw a menu of the launchers' formats; the chosen one opens a dialog.

    Args:
        hosts: Names of the job's hosts, which launchers know.
    """
    chosen = st.menu_button("Get files", launchers.FORMATS.names, icon=":material/download:", key="files")
    if chosen is not None:
        outside.add(_DIALOG, partial(_dialog, opened, hosts, chosen))


@st.dialog("Launcher file", on_dismiss=partial(outside.remove, _DIALOG))
def _dialog(opened: OpenPlacement, hosts: Sequence[str], name: str) -> None:
    """Draw the download of a file and the command that starts a program with it."""
    stored, fabric = opened.stored, opened.snapshot.fabric.named_as(hosts)
    try:
        content = launchers.write(name, stored.placement, fabric)
    except InvalidPlacement as error:
        st.warning(reason_of(error), icon=":material/block:")
        return
    file = f"{stored.id}-{name}.{'csv' if name == 'csv' else 'txt'}"
    st.markdown(f"**{plain(name)}** of placement {plain(stored.id)}, {stored.placement.ranks:,} ranks")
    command = launchers.launch_line(name, stored.placement, fabric, file)
    if command is None:
        st.caption("No launcher reads this file itself.")
    else:
        st.caption("Start the program with")
        st.code(command, language=None, wrap_lines=True)
    download(f"Download {plain(file)}", content, file, key=f"file {name}", mime="text/plain")


MOST_CELLS = 3_000
"""Maximum number of hosts drawn as cells; more are shown in the table only."""


def draw_ranks(view: JobView, opened: OpenPlacement) -> None:
    """Draw the job's hosts and the ranks on them."""
    name, before = _before(view, opened)
    left, right = st.columns([2, 1])
    with left:
        _hosts(opened, name, before)
    with right:
        _ranks(opened, name, before)


def _before(view: JobView, opened: OpenPlacement) -> tuple[str, Ints]:
    """Return the name of the compared placement and the host of each rank in it."""
    placement = opened.stored.placement
    if view.beside is None:
        return view.beside_name, placement.allocation.host_of_slot[: placement.ranks]
    return view.beside_name, view.beside.stored.placement.host_of_rank


def _hosts(opened: OpenPlacement, name: str, before: Ints) -> None:
    """Draw the hosts of each switch and the ranks on them, for both placements."""
    placement, fabric = opened.stored.placement, opened.snapshot.fabric
    near = neighbours(opened.snapshot.id, fabric)
    hosts = np.union1d(placement.allocation.hosts, before)
    found = host_cells(fabric, near, hosts)
    if len(found.cells) > MOST_CELLS:
        st.caption(f"{len(hosts):,} hosts are too many to draw; the table below lists them.")
        return
    theme = theme_of(st.context.theme.type)
    both = {name: before, "placed": placement.host_of_rank}
    for column, (title, host_of_rank) in zip(st.columns(2), both.items(), strict=True):
        cells = with_ranks(found.cells, fabric, host_of_rank)
        chart = hosts_figure(found.rows, cells, f"Ranks, {title}", placement.ranks, theme)
        with column:
            st.altair_chart(chart, width="content", key=f"hosts {title}")
    st.caption(
        "Each cell is a host, each row a switch. Outlined: other hosts. Grey: hosts of this job "
        "without ranks. Similar colours side by side: consecutive ranks are close to each other."
    )


def _ranks(opened: OpenPlacement, name: str, before: Ints) -> None:
    """Draw a table of the ranks on each host, for both placements."""
    stored, fabric = opened.stored, opened.snapshot.fabric
    columns = {name: [fabric.names[v] for v in before.tolist()], "placed": list(stored.hosts)}
    own = stored.placement.allocation.hosts.tolist()
    # the compared placement may use other hosts
    hosts = list(dict.fromkeys([*(fabric.names[v] for v in own), *columns[name]]))
    st.dataframe(ranks_per_host(hosts, columns), hide_index=True, height=400, key="ranks")


def draw_communication(opened: OpenPlacement) -> None:
    """Draw the bytes between ranks."""
    if opened.profile is None:
        st.info("The profile of this placement is not known.")
        return
    profile = opened.profile.profile
    theme = theme_of(st.context.theme.type)
    chart = communication_matrix(communication(profile), profile.ranks, theme)
    left, right = st.columns([3, 2])
    with left:
        st.altair_chart(chart, width="content", key="communication")
    with right:
        facts = {
            "Profile": profile.name,
            "Application": profile.application,
            "Ranks": f"{profile.ranks:,}",
            "Pairs of ranks": f"{len(profile.bytes):,}",
            "Bytes": units.short(float(profile.bytes.sum()), units.BYTES),
        }
        table = pd.DataFrame({"fact": list(facts), "value": list(facts.values())})
        st.dataframe(table, hide_index=True, key="profile")


def draw_runs(view: JobView, opened: OpenPlacement, gains: Sequence[MeasuredGain], site: Site) -> None:
    """Draw the choice of a placement, its costs, the placements, what they gained, links to other pages."""
    stored = opened.stored
    left, right = st.columns(2)
    with left:
        draw_choice(view)
        st.markdown("**Costs**")
        if stored.evaluation is not None:
            other = None if view.beside is None else view.beside.stored
            st.dataframe(cost_table(stored, other, view.beside_name), hide_index=True, key="costs")
            _background(opened, view.beside)
    with right:
        st.markdown("**Placements of this job**")
        st.dataframe(
            placements_table([] if view.file is None else view.file.placements),
            hide_index=True,
            height=260,
            placeholder="",
            key="placements",
        )
        with st.container(horizontal=True):
            link_to(site.trends, "Simulated runs", icon="play_circle", tab="simulations", placement=stored.id)
            link_to(site.trends, "Earlier runs", icon="show_chart", cluster=stored.cluster)
            link_to(site.fabric, "Show on the fabric", cluster=stored.cluster, placement=stored.id)
    if gains:
        st.markdown("**Measured gain**", help=ABOUT)
        measured_list(gains)
    with st.expander("How this placement was found"):
        facts = _provenance(opened)
        table = pd.DataFrame({"fact": list(facts), "value": list(facts.values())})
        st.dataframe(table, hide_index=True, height="content", key="provenance")


def _background(opened: OpenPlacement, beside: OpenPlacement | None) -> None:
    """State which other traffic the costs include, and warn if the two placements differ in it."""
    evaluation = opened.stored.evaluation
    other = None if beside is None else beside.stored.evaluation
    if evaluation is not None and evaluation.background:
        jobs = evaluation.background.partition(" bytes of ")[2] or evaluation.background
        st.caption(f"Costs of worst links include the traffic of {plain(jobs)}.")
    if evaluation is not None and other is not None and other.background != evaluation.background:
        load = plain(other.background or "none")
        st.warning(
            f"The worst links cannot be compared: the other placement includes other traffic ({load})."
        )


def _provenance(opened: OpenPlacement) -> dict[str, str]:
    """Return how the placement was found, as texts by name."""
    stored = opened.stored
    placement, evaluation = stored.placement, stored.evaluation
    return {
        "placement": stored.id,
        "saved at": units.moment_text(stored.recorded_at),
        "cluster": stored.cluster,
        "snapshot": stored.content,
        "profile": "" if opened.profile is None else f"{opened.profile.profile.name} ({opened.profile.id})",
        "strategy": placement.strategy,
        "objective": placement.objective,
        "routing": placement.routing
        if evaluation is None
        else f"{evaluation.routing}, rails {evaluation.rails}",
        "seed": "" if placement.seed is None else str(placement.seed),
        "search": f"{placement.seconds:.3g} s, {placement.steps:,} steps"
        + ("" if placement.complete else ", interrupted"),
        "parameters": ", ".join(f"{name} = {value}" for name, value in placement.parameters.items()),
        "code version": stored.code_version,
    }
