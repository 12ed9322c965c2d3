"""Part of the page Trends: two placements or two clusters side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from dashboard.figures import history as drawings
from dashboard.figures.style import theme_of
from dashboard.queries import door
from dashboard.queries.history import History
from dashboard.state.site import Site
from dashboard.tables.columns import in_units
from dashboard.tables.history import applications_table, facts_table, option_text, relative
from dashboard.widgets.cards import card
from dashboard.widgets.controls import choose, toggle
from dashboard.widgets.messages import show_unknown
from dashboard.widgets.navigation import link_to
from mapping.cost.metrics import differences
from mapping.traffic.names import full_link
from registry import units
from registry.errors import UnknownName
from registry.pages.placements import OpenPlacement
from registry.registry import Registry

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
    st.altair_chart(drawings.dumbbell(relative(series, chosen), theme), key="dumbbell")
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
        st.altair_chart(drawings.two_clusters(table, (pair[0], pair[1]), theme), key="two clusters")
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
