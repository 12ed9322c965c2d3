"""Part of the job page: a placement as launcher files, and its provenance."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.state.site import Site
from dashboard.tables.placements import METRICS
from dashboard.widgets.messages import plain
from dashboard.widgets.navigation import link_to
from dashboard.widgets.tables import download
from mapping.launchers import catalog
from registry import units
from registry.errors import InvalidPlacement
from registry.model import Evaluation
from registry.pages.placements import OpenPlacement


def draw(opened: OpenPlacement, site: Site) -> None:
    """Draw the files and the provenance of a placement."""
    _files(opened)
    _provenance(opened, site)


def _files(opened: OpenPlacement) -> None:
    """Draw a download button for each launcher format; disabled if the format cannot express it."""
    st.subheader("Launcher files")
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
    """Draw a table of the search and the proofs of the bounds, and links to other pages."""
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
    with st.expander("Search parameters and proofs of bounds"):
        table = pd.DataFrame({"fact": list(facts), "value": list(facts.values())})
        st.dataframe(table, hide_index=True, height="content", key="provenance")
    with st.container(horizontal=True):
        link_to(site.fabric, "Show on the fabric", cluster=stored.cluster, placement=stored.id)
        link_to(site.history, "Show in the history", cluster=stored.cluster)


def _proofs(evaluation: Evaluation | None) -> dict[str, str]:
    """Return each lower bound with its proof, as text."""
    bounds = {} if evaluation is None else evaluation.bounds
    proofs = {}
    for metric, about in METRICS.items():
        if metric in bounds:
            value = units.text(bounds[metric].value, about.base)
            proofs[f"bound of {about.title.lower()}"] = f"{value}: {bounds[metric].proof}"
    return proofs
