"""Part of the job page: each cost of a placement against what stands beside it, at random, and its bound."""

from __future__ import annotations

import streamlit as st

from dashboard import figures, tables
from dashboard.queries.job import JobView
from dashboard.widgets.messages import plain
from registry import units
from registry.model import Evaluation


def draw(view: JobView, evaluation: Evaluation) -> None:
    """Each cost against what stands beside and at random, and how far it can be from the best possible."""
    st.subheader("What it costs")
    assert view.opened is not None
    stored = view.opened.stored
    theme = figures.theme_of(st.context.theme.type)
    other = None if view.beside is None else view.beside.stored.evaluation
    for column, (metric, about) in zip(st.columns(len(tables.METRICS)), tables.METRICS.items(), strict=True):
        value, bound = float(getattr(evaluation, metric)), evaluation.bounds.get(metric)
        values = tables.comparison(
            metric, value, stored.in_order, stored.random, None if bound is None else bound.value
        )
        before = values.get(tables.IN_ORDER) if other is None else float(getattr(other, metric))
        delta, better = tables.change(value, before, view.beside_name)
        with column:
            st.metric(
                about.title,
                units.text(value, about.base),
                delta,
                delta_color="off" if better is None else "inverse",
                delta_arrow="off" if better is None else "auto",
                help=about.about,
            )
            st.altair_chart(figures.comparison(values, about.base, theme), key=f"costs {metric}")
            st.caption("no lower bound is known" if bound is None else plain(bound.certifies(value)))
    _background(evaluation, other)


def _background(evaluation: Evaluation, other: Evaluation | None) -> None:
    """What else was on the links, where anything was."""
    if evaluation.background:
        st.caption(f"The two worst links are with other jobs' load: {plain(evaluation.background)}.")
    if other is not None and other.background != evaluation.background:
        told = plain(other.background or "none")
        st.warning(
            f"The worst links do not compare: the other placement was judged beside other load ({told})."
        )
