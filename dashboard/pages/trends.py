"""The page Trends: quality of each application's placements over time, regressions and their causes.

Measured gains beside estimated ones: a number on the page of a job, a list there and on Trends.

Part of the page Trends: two placements or two clusters side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.pages import trends_data
from dashboard.pages.trends_data import (
    Panel,
    Verdict,
    applications_table,
    facts_table,
    gain_text,
    gains_table,
    option_text,
    panels,
    placements_table,
    points,
    relative,
    times_text,
    verdict,
)
from dashboard.shared import door
from dashboard.shared.bar import link_to
from dashboard.shared.cards import (
    State,
    badge,
    card,
    csv_text,
    download,
    keep_selected,
    number,
    picked_row,
    plain,
    set_address,
    show_empty,
    show_unknown,
    theme_of,
)
from dashboard.shared.controls import any_of, choose, named, page_start, pager, toggle
from dashboard.shared.names import METRICS
from dashboard.shared.placements import History, history
from dashboard.shared.traffic import in_units
from dashboard.shared.viewer import Site
from mapping.cost.metrics import differences
from mapping.traffic.job_loads import Regression
from mapping.traffic.measured_gain import NEEDED, MeasuredGain
from mapping.traffic.names import full_link
from registry import units
from registry.errors import UnknownName
from registry.model import Longs
from registry.registry import Registry
from registry.store.placements import OpenPlacement

MEASURED_LISTED = 100
"""Maximum rows of the list, the newest."""
STATES = {Verdict.WORSE: State.ACT, Verdict.NOT_WORSE: State.OK, Verdict.OPEN: State.UNKNOWN}
"""State of each verdict."""
ABOUT_GAINS = (
    "Median time of runs in order over that of runs with the placement, of one program with the same "
    "arguments, ranks and hosts. The estimated gain is that of the worst link, which bounds what "
    "communication alone can gain. Other load: the largest share of a link's capacity that other jobs used "
    f"meanwhile, as estimated; median of the runs. Worse or not is judged from {NEEDED} runs of each kind."
)
MEASURE = "almanac run --profile PROFILE mpirun -n 64 ./program"
"""Command that measures a run."""


def measured_number(gains: Sequence[MeasuredGain]) -> None:
    """Draw what the shown placement gained in the newest measured runs of it."""
    one = gains[0]
    found = verdict(one)
    with number(
        "Measured gain", gain_text(one.gain), help=ABOUT_GAINS, note=found.value[1], state=STATES[found]
    ):
        parts = [f"estimated {gain_text(one.estimated)}", times_text(one)]
        if len(gains) > 1:
            parts.append(f"{units.counted(len(gains) - 1, 'more program')}: see Runs")
        st.caption(plain(" · ".join(parts)))


def measured_list(gains: Sequence[MeasuredGain]) -> str | None:
    """Draw a row for each placement and program, and return the placement of the selected row."""
    table = gains_table(gains[:MEASURED_LISTED])
    factor = st.column_config.NumberColumn(format="%.2f ×")
    keep_selected("measured", [one.run.id for one in gains[:MEASURED_LISTED]])
    event = st.dataframe(
        table,
        hide_index=True,
        column_config={"estimated gain": factor, "measured gain": factor},
        on_select="rerun",
        selection_mode="single-row",
        key="measured",
    )
    row = picked_row(event, len(table))
    return None if row is None else str(table["placement"].iloc[row])


def measured_card(gains: Sequence[MeasuredGain], site: Site) -> None:
    """Draw the list in a card, or one line on how to measure if there is nothing to list."""
    if not gains:
        st.caption(f"No run of these placements was measured yet. This measures one: `{MEASURE}`")
        return
    with card("Measured gain", help=f"{ABOUT_GAINS} Select a row to open its job."):
        chosen = measured_list(gains)
        if len(gains) > MEASURED_LISTED:
            st.caption(f"The newest {MEASURED_LISTED:,} of {len(gains):,}.")
        if chosen is not None:
            link_to(site.jobs, f"Open {plain(chosen)}", placement=chosen)


OFFERED = 500
"""Maximum number of offered placements, the newest ones; the address may name any id."""
LINKS = 20
"""Maximum number of listed links with the largest differences."""
PLACEMENTS, CLUSTERS = "placements", "clusters"


def compare(registry: Registry, view: History, site: Site) -> None:
    """Draw a card with the choice of a comparison, and the comparison."""
    with card("Compare", help="Each cost relative to the larger of the two."):
        options = {PLACEMENTS: "Placements", CLUSTERS: "Clusters"}
        if toggle("Compare", "compare", options, default=PLACEMENTS, hide_label=True) == PLACEMENTS:
            _two_placements(registry, view, site)
        else:
            _two_clusters(view)


def _defaults(view: History) -> tuple[str, str]:
    """Return the newest regression and the last good placement before it, or the two newest placements."""
    if view.regressions:
        return view.regressions[0].last_good, view.regressions[0].id
    ids = view.series.id
    return ids[max(len(ids) - 2, 0)], ids[-1]


def _two_placements(registry: Registry, view: History, site: Site) -> None:
    """Draw costs, facts and the most different links of two placements."""
    series = view.series
    row_of = {identity: row for row, identity in enumerate(series.id)}
    newest = list(row_of)[: -OFFERED - 1 : -1]
    pair = _pair(
        "placement",
        ("a", "b"),
        list(row_of),
        newest,
        _defaults(view),
        lambda name: option_text(series, row_of[name]),
    )
    if pair is None:
        return
    chosen = [row_of[name] for name in pair]
    theme = theme_of(st.context.theme.type)
    st.altair_chart(trends_data.dumbbell(relative(series, chosen), theme), key="dumbbell")
    with st.container(horizontal=True):
        for label, row in zip("AB", chosen, strict=True):
            link_to(site.jobs, f"Open {label}", placement=series.id[row])
    with st.expander("All differences"):
        st.dataframe(facts_table(series, chosen), hide_index=True, key="facts", height=300)
        if series.snapshot[chosen[0]] == series.snapshot[chosen[1]] and chosen[0] != chosen[1]:
            _links(*door.pair(registry, series.id[chosen[0]], series.id[chosen[1]], site.viewer))


def _links(first: OpenPlacement, second: OpenPlacement) -> None:
    """Draw the links with the largest differences in load; both placements are on one fabric."""
    evaluations = [one.stored.evaluation for one in (first, second)]
    known = [one for one in evaluations if one is not None]
    if len(known) < 2:
        return
    fabric = first.snapshot.fabric
    found = differences(fabric, known, most=LINKS)
    table = pd.DataFrame(
        {
            "link": [full_link(fabric, one.row) for one in found],
            "A": [one.loads[0].seconds for one in found],
            "B": [one.loads[1].seconds for one in found],
            "difference": [one.seconds for one in found],
        }
    )
    if found:
        st.markdown("**Links with largest differences**")
        bases = dict.fromkeys(("A", "B", "difference"), units.SECONDS)
        st.dataframe(in_units(table, bases), hide_index=True, key="differences", height=250)


def _two_clusters(view: History) -> None:
    """Draw facts and applications of two clusters."""
    names = list(view.clusters)
    if len(names) < 2:
        st.info("There is only one cluster.")
        return
    pair = _pair("cluster", ("cluster a", "cluster b"), names, names, (names[0], names[1]), str)
    if pair is None:
        return
    st.dataframe(_cluster_facts(view, pair), hide_index=True, key="cluster facts", height="content")
    table = applications_table(view.series, pair)
    if table.empty:
        st.info("Neither cluster has an evaluated placement.")
        return
    theme = theme_of(st.context.theme.type)
    if len(set(pair)) == 2 and table["over bound"].notna().any():
        st.altair_chart(trends_data.two_clusters(table, (pair[0], pair[1]), theme), key="two clusters")
    st.dataframe(table.round(4), hide_index=True, placeholder="", key="applications", height="content")


def _pair(
    kind: str,
    parameters: tuple[str, str],
    known: Sequence[str],
    offered: Sequence[str],
    defaults: tuple[str, str],
    show: Callable[[str], str],
) -> tuple[str, str] | None:
    """Draw the choice of two things and return them, or None after an error about an unknown name."""
    chosen = []
    for label, parameter, default in zip("AB", parameters, defaults, strict=True):
        wanted = st.query_params.get(parameter, default)
        options = [*offered, wanted] if wanted in known and wanted not in offered else offered
        try:
            if wanted not in known:
                raise UnknownName(kind, wanted, known)
            chosen.append(choose(label, parameter, options, show=show, kind=kind, default=default) or default)
        except UnknownName as error:
            show_unknown(error, parameter)
    return (chosen[0], chosen[1]) if len(chosen) == 2 else None


def _cluster_facts(view: History, pair: Sequence[str]) -> pd.DataFrame:
    """Return sizes, observation times and numbers of placements of two clusters."""
    infos = [view.clusters[name] for name in pair]
    facts = {
        "hosts": [f"{info.hosts:,}" for info in infos],
        "adapters without a host's name": [f"{info.unnamed:,}" for info in infos],
        "adapters": [f"{info.adapters:,}" for info in infos],
        "switches": [f"{info.switches:,}" for info in infos],
        "cables": [f"{info.cables:,}" for info in infos],
        "different wirings": [f"{info.contents:,}" for info in infos],
        "first seen": [units.moment_text(info.first_observed_at) for info in infos],
        "last seen": [units.moment_text(info.last_observed_at) for info in infos],
        "evaluated placements": [f"{view.series.cluster.count(info.name):,}" for info in infos],
    }
    both = list(facts.values())
    return pd.DataFrame({"fact": list(facts), "A": [one[0] for one in both], "B": [one[1] for one in both]})


ROWS = 4
"""Applications on a page."""
LISTED = 100
"""Maximum rows of the table, the newest placements."""
WORST_LINK = "congestion_seconds"
ABOUT = (
    "A row for each application on a cluster, newest regressions first. The band reaches from the median of "
    "the placements before to the control limit. A placement whose distance from the best possible is above "
    "the limit is a regression. " + trends_data.KEY
)


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    view = history(registry, site.viewer)
    if not len(view.series):
        show_empty(
            "The registry holds no evaluated placement yet. Find one, or load the demonstration:",
            "almanac map PROFILE --cluster NAME --hosts HOSTLIST",
            "almanac demo",
        )
        return
    try:
        left, right = st.columns([2, 1])
        with left:
            rows = _applications(view)
        with right:
            compare(registry, view, site)
        shown = {view.series.id[row] for row in rows.tolist()}
        measured_card([one for one in view.gains if one.run.placement in shown], site)
        _table(view, rows, site)
    except UnknownName as error:
        show_unknown(error, error.kind)


def _applications(view: History) -> Longs:
    """Draw a row for each application, and return the matching rows of the series.

    Raises:
        UnknownName
    """
    series = view.series
    cluster = named("cluster", sorted(set(series.cluster)))
    with card("Applications", help=ABOUT):
        left, right = st.columns(2)
        with left:
            application = any_of("application", sorted(set(series.application)), resets=("page",))
        with right:
            titles = {metric: about.title for metric, about in METRICS.items()}
            metric = (
                choose("Cost", "metric", list(titles), show=titles.__getitem__, kind="metric") or WORST_LINK
            )
        wanted = zip(series.cluster, series.application, strict=True)
        keep = [cluster in (None, here) and application in (None, name) for here, name in wanted]
        rows = np.flatnonzero(keep).astype(np.int64)
        every = panels(series, view.quality, rows)
        first = page_start(ROWS, "page")
        for number, panel in enumerate(every[first : first + ROWS]):
            _application(view, panel, metric, number)
        if len(every) > ROWS:
            pager(len(every), ROWS, "page", "applications")
    return rows


def _application(view: History, panel: Panel, metric: str, number: int) -> None:
    """Draw the row of an application: its name, its placements over time, its state with the cause."""
    name, chart, state = st.columns([3, 6, 4], vertical_alignment="center")
    with name:
        st.markdown(f"**{plain(panel.application)}**")
        st.caption(plain(f"{panel.cluster} · {units.counted(len(panel.rows), 'placement')}"))
    with chart:
        table = points(view.series, view.quality, panel.rows, metric)
        unit = units.unit_for(table["value"].tolist(), METRICS[metric].base)
        label = f"{METRICS[metric].title} ({unit.name})"
        drawn = trends_data.sparkline(table, panel.title, label, unit.size, theme_of(st.context.theme.type))
        st.vega_lite_chart(drawn.rows, drawn.spec, key=f"application {number}")
    with state:
        _state(view, panel, number)


def _state(view: History, panel: Panel, number: int) -> None:
    """Draw the newest regression of an application with its cause, or its distance from the best."""
    mine = set(panel.rows.tolist())
    found = next((one for one in view.regressions if one.row in mine), None)
    if found is None:
        known = panel.rows[np.isfinite(view.quality.ratio[panel.rows])]
        if len(known):
            badge(State.OK, f"{view.quality.ratio[known[-1]]:.3g} × the best possible")
        else:
            badge(State.UNKNOWN, "no certified bound")
        return
    badge(State.ACT, f"{found.ratio:.3g} ×, limit {found.limit:.3g} ×", help=_when(found))
    st.caption(plain(f"Changed: {', '.join(found.changed) or 'nothing recorded'}"))
    st.button(
        "Compare",
        icon=":material/compare_arrows:",
        help="Compare with the last good placement",
        on_click=set_address,
        kwargs={"compare": None, "a": found.last_good, "b": found.id},
        key=f"compare {number}",
    )


def _when(found: Regression) -> str:
    return f"Regression of {units.moment_text(found.recorded_at)}: distance from the best possible"


def _table(view: History, rows: Longs, site: Site) -> None:
    """Draw the newest placements; a selected one can be opened, two are compared."""
    with card("Placements", help="Select a row to open its job, or two rows to compare them."):
        newest = rows[::-1]
        table = placements_table(view.series, view.quality, newest[:LISTED])
        bases = {about.title: about.base for about in METRICS.values()}

        def picked() -> None:
            chosen = st.session_state["placements"]["selection"]["rows"]
            names = [str(table["placement"].iloc[row]) for row in chosen if row < len(table)]
            if len(names) == 2:
                set_address(compare=None, a=names[0], b=names[1])

        keep_selected("placements", table["placement"].tolist())
        event = st.dataframe(
            in_units(table, bases),
            hide_index=True,
            on_select=picked,
            selection_mode="multi-row",
            placeholder="",
            key="placements",
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            download(
                "Download as CSV",
                lambda: csv_text(placements_table(view.series, view.quality, newest)),
                "placements.csv",
                key="placements csv",
            )
            if len(rows) > LISTED:
                st.caption(f"The newest {LISTED:,} of {len(rows):,}; the file has all.")
        selected = [row for row in event["selection"]["rows"] if row < len(table)]
        if len(selected) == 1:
            name = str(table["placement"].iloc[selected[0]])
            link_to(site.jobs, f"Open {plain(name)}", placement=name)
