"""Measured gains beside estimated ones: a number on the page of a job, a list there and on Trends."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.state.site import Site
from dashboard.tables.measured import Verdict, gain_text, gains_table, times_text, verdict
from dashboard.widgets.cards import card, number
from dashboard.widgets.messages import plain
from dashboard.widgets.navigation import link_to
from dashboard.widgets.states import State
from dashboard.widgets.tables import keep_selected, picked_row
from mapping.traffic.measured_gain import NEEDED, MeasuredGain
from registry import units

LISTED = 100
"""Maximum rows of the list, the newest."""
STATES = {Verdict.WORSE: State.ACT, Verdict.NOT_WORSE: State.OK, Verdict.OPEN: State.UNKNOWN}
"""State of each verdict."""
ABOUT = (
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
    with number("Measured gain", gain_text(one.gain), help=ABOUT, note=found.value[1], state=STATES[found]):
        parts = [f"estimated {gain_text(one.estimated)}", times_text(one)]
        if len(gains) > 1:
            parts.append(f"{units.counted(len(gains) - 1, 'more program')}: see Runs")
        st.caption(plain(" · ".join(parts)))


def measured_list(gains: Sequence[MeasuredGain]) -> str | None:
    """Draw a row for each placement and program, and return the placement of the selected row."""
    table = gains_table(gains[:LISTED])
    factor = st.column_config.NumberColumn(format="%.2f ×")
    keep_selected("measured", [one.run.id for one in gains[:LISTED]])
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
    with card("Measured gain", help=f"{ABOUT} Select a row to open its job."):
        chosen = measured_list(gains)
        if len(gains) > LISTED:
            st.caption(f"The newest {LISTED:,} of {len(gains):,}.")
        if chosen is not None:
            link_to(site.jobs, f"Open {plain(chosen)}", placement=chosen)
