"""Cards show their heading, number and state, and never markup from files."""

from __future__ import annotations

from tests.support.apps import app_of


def script() -> None:
    from datetime import UTC, datetime

    import numpy as np

    from dashboard.figures.over_time import sparkline
    from dashboard.figures.style import LIGHT
    from dashboard.widgets.cards import card, number, unknown
    from dashboard.widgets.states import State

    card("Busiest *links*")
    times = [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (1, 2, 3)]
    chart = sparkline(times, np.array([0.1, np.nan, 0.2]), "Peak link", LIGHT)
    number("Peak link", "80 %", note="MF0;a*b*", chart=chart)
    number("Health", "2", note="1 warning", state=State.LOOK)
    unknown("Counters", "almanac ingest --cluster c COUNTERS")


def test_cards_show_heading_number_note_state_and_command() -> None:
    app = app_of(script).run()
    assert not app.exception
    assert [one.value for one in app.header] == ["Busiest \\*links\\*"]
    assert [(one.label, one.value) for one in app.metric] == [("Peak link", "80 \\%"), ("Health", "2")]
    assert [one.value for one in app.caption] == ["MF0\\;a\\*b\\*", "Counters"]
    assert [one.value for one in app.markdown] == [
        ":orange-badge[:material/warning: 1 warning]",
        ":grey-badge[:material/help: never read]",
    ]
    (drawn,) = app.get("vega_lite_chart")
    assert "Peak link over time" in drawn.proto.spec
    assert [one.value for one in app.code] == ["almanac ingest --cluster c COUNTERS"]
