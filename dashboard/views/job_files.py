"""Part of the job page: a placement in every format of a launcher, and how it was found."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.state.site import Site
from dashboard.tables.placements import METRICS
from dashboard.widgets.downloads import download
from dashboard.widgets.messages import plain
from mapping.launchers import catalog
from registry import units
from registry.errors import InvalidPlacement
from registry.model import Evaluation
from registry.pages.placements import OpenPlacement


def draw(opened: OpenPlacement, site: Site) -> None:
    """Draw the part."""
    _files(opened)
    _provenance(opened, site)


def _files(opened: OpenPlacement) -> None:
    st.subheader("Files for launchers")
    stored = opened.stored
    with st.container(horizontal=True):
        for name in catalog.FORMATS.names:
            try:
                content = catalog.write(name, stored.placement, opened.snapshot.fabric)
            except InvalidPlacement as error:
                st.button(name, disabled=True, help=plain(str(error)), key=f"file {name}")
                continue
            ending = "csv" if name == "csv" else "txt"
            download(name, content, f"{stored.id}-{name}.{ending}", key=f"file {name}", mime="text/plain")


def _provenance(opened: OpenPlacement, site: Site) -> None:
    stored = opened.stored
    placement = stored.placement
    evaluation = stored.evaluation
    facts = {
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
        **_proofs(evaluation),
    }
    with st.expander("How it was found, and what proves the bounds"):
        table = pd.DataFrame({"fact": list(facts), "value": list(facts.values())})
        st.dataframe(table, hide_index=True, height="content", key="provenance")
    with st.container(horizontal=True):
        st.page_link(
            site.fabric,
            label="On the whole fabric",
            icon=":material/arrow_forward:",
            query_params={"cluster": stored.cluster, "placement": stored.id},
        )
        st.page_link(
            site.history,
            label="In the history",
            icon=":material/arrow_forward:",
            query_params={"cluster": stored.cluster},
        )


def _proofs(evaluation: Evaluation | None) -> dict[str, str]:
    """Why each cost cannot be below its bound."""
    bounds = {} if evaluation is None else evaluation.bounds
    told = {}
    for metric, about in METRICS.items():
        if metric in bounds:
            value = units.text(bounds[metric].value, about.base)
            told[f"bound of {about.title.lower()}"] = f"{value}: {bounds[metric].proof}"
    return told
