"""Widgets: what they store in the address and show of it, and that text from files stays text."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from dashboard.shared.cards import State, badge_text, csv_text, plain
from tests.dashboard.conftest import MARKUP
from tests.support.apps import address, app_of


def drawn(script: Callable[[], None], **given: str) -> AppTest:
    app = app_of(script)
    app.query_params.update(given)
    app.run()
    assert not app.exception, app.exception
    return app


# --- address and controls -----------------------------------------------------------------------------------


def addressed() -> None:
    from dashboard.shared.cards import set_address

    set_address(link="a:1", device=None, **{"cluster a": ""})


def test_parameters_are_set_and_those_without_a_value_removed() -> None:
    app = drawn(addressed, device="b", at="now")
    assert address(app) == {"at": "now", "link": "a:1", "cluster a": ""}


def controls() -> None:
    from datetime import UTC, datetime

    import streamlit as st

    from dashboard.pages.fabric_device import change_marks
    from dashboard.shared.controls import (
        any_of,
        at_least,
        moment,
        page_start,
        pager,
        text_field,
        timeline,
        toggle,
    )

    first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)
    st.session_state["found"] = {
        "cluster": any_of("cluster", ["a", "b"], resets=("page",)),
        "colour": toggle("Colour", "colour", {"red": "Red", "blue": "Blue"}, "red"),
        "text": text_field("Job", "text", resets=("page",)),
        "gain": at_least("Gain", "gain"),
        "time": moment("Time", "at", first, last),
        "start": page_start(10, "page"),
    }
    timeline("Time", "at", first, {last: "wiring"}, change_marks)
    pager(25, 10, "page", "jobs")


def test_the_address_holds_the_state_of_all_controls() -> None:
    given = {"cluster": "b", "colour": "blue", "text": "47", "gain": "1.5", "page": "2"}
    app = drawn(controls, at="2026-01-02T00:00:00", **given)
    found = app.session_state["found"]
    assert (found["cluster"], found["colour"], found["text"], found["gain"]) == ("b", "blue", "47", 1.5)
    assert found["time"].isoformat() == "2026-01-02T00:00:00+00:00"
    assert found["start"] == 10
    assert "11 to 20 of 25 jobs" in [text.value for text in app.text]
    # the slider shows the last stop before the time, and its end means now
    assert app.select_slider[0].value == "2026-01-01T00:00:00+00:00"
    app.select_slider[0].set_value("now").run()
    assert address(app) == given


def test_a_choice_changes_the_address_and_resets_other_parameters() -> None:
    app = drawn(controls, page="3")
    app.selectbox[0].set_value("a").run()
    assert address(app) == {"cluster": "a"}
    app.selectbox[0].set_value(None).run()
    assert address(app) == {}
    app.text_input[0].set_value(" 47 ").run()
    assert address(app) == {"text": "47"}  # without blanks; an empty one is removed
    app.text_input[0].set_value("  ").run()
    assert address(app) == {}


def test_buttons_turn_pages() -> None:
    app = drawn(controls)
    back, on = (button for button in app.button if button.label in ("Previous", "Next"))
    assert back.disabled
    on.click().run()
    assert address(app) == {"page": "2"}
    app.button(key="page back").click().run()
    assert address(app) == {}


def test_the_slider_stops_at_each_change_and_wrong_texts_are_reported() -> None:
    app = drawn(controls, gain="many", at="soon", colour="green")
    warnings = " ".join(one.value for one in app.warning)
    assert "is not a number of 1 or more" in warnings
    assert "is not a time such as" in warnings
    assert "Colour can be red, blue" in warnings
    slider = drawn(controls, at="2026-01-03T00:00:01").select_slider[0]
    assert slider.value == "2026-01-03T00:00:00+00:00"
    assert drawn(controls, at="-1h").select_slider[0].value != "now"
    assert [text for text in slider.options if "wiring" in text] == ["03 Jan 00:00 · wiring"]
    assert slider.options[-1] == "now"
    assert 3 <= len(slider.options) <= 102


def test_a_redrawn_field_is_not_set_again_so_that_typing_is_not_lost() -> None:
    app = drawn(controls, text="47", gain="1.5")
    assert all(one.proto.set_value for one in [*app.text_input, *app.number_input])  # from the address
    app.run()
    assert not any(one.proto.set_value for one in [*app.text_input, *app.number_input])


# --- the bar ------------------------------------------------------------------------------------------------


def bar() -> None:
    from datetime import UTC, datetime, timedelta

    import streamlit as st

    from dashboard.shared import bar
    from registry.store.fabrics import ClusterInfo

    now = datetime.now(UTC)
    sizes = dict.fromkeys(
        ["observations", "contents", "hosts", "switches", "adapters", "cables", "version"], 1
    )
    infos = {
        name: ClusterInfo(
            name=name, snapshot="s", first_observed_at=now - timedelta(days=2), last_observed_at=last, **sizes
        )
        for name, hours in (("alpha", 3), ("beta", 5))
        for last in (now - timedelta(hours=hours, seconds=5),)
    }
    with bar.draw("Title", list(infos), all_clusters=False):
        bar.ages(infos, now)
    st.text(f"{bar.time_range().total_seconds()} {bar.is_live()}")


def test_a_cluster_and_a_day_are_the_default_and_another_cluster_removes_what_belongs_to_it() -> None:
    app = drawn(bar)
    assert app.title[0].value == "Title"
    assert app.selectbox(key="choose cluster").value == "alpha"
    assert "scan 3 hours ago" in app.caption[0].value
    assert app.text[0].value == f"{timedelta(days=1).total_seconds()} True"
    app.selectbox(key="choose range").set_value("7d").run()
    app.toggle(key="live").set_value(False).run()
    assert address(app) == {"range": "7d", "live": "off"}
    assert app.text[0].value == f"{timedelta(days=7).total_seconds()} False"
    app.toggle(key="live").set_value(True).run()
    assert address(app) == {"range": "7d"}
    app = drawn(bar, link="leaf1:3", tab="changes", range="7d")
    app.selectbox(key="choose cluster").set_value("beta").run()
    assert address(app) == {"cluster": "beta", "tab": "changes", "range": "7d"}
    assert "scan 5 hours ago" in app.caption[0].value
    app.selectbox(key="choose cluster").set_value("alpha").run()
    assert not app.exception
    assert address(app) == {"cluster": "alpha", "tab": "changes", "range": "7d"}


def test_a_job_names_the_cluster_an_unknown_one_is_none_and_a_wall_has_no_controls() -> None:
    assert drawn(bar, job="beta/17").selectbox(key="choose cluster").value == "beta"
    for unknown in ({"cluster": "gamma"}, {"job": "gamma/1"}):
        app = drawn(bar, **unknown)
        assert app.selectbox(key="choose cluster").value is None
        assert "scan" not in app.caption[0].value
    app = drawn(bar, wall="1")
    assert not app.selectbox
    assert not app.toggle
    assert "scan 3 hours ago" in app.caption[0].value


# --- cards, states, messages and lists ----------------------------------------------------------------------


def cards() -> None:
    from datetime import UTC, datetime

    import numpy as np

    from dashboard.pages.fabric_device import sparkline
    from dashboard.shared.cards import LIGHT, State, badge, card, number, unknown

    card("Busiest *links*")
    times = [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (1, 2, 3)]
    chart = sparkline(times, np.array([0.1, np.nan, 0.2]), "Peak link", LIGHT)
    number("Peak link", "80 %", note="MF0;a*b*", chart=chart)
    number("Health", "2", note="1 warning", state=State.LOOK)
    unknown("Counters", "almanac ingest --cluster c COUNTERS")
    badge(State.OK)


def test_cards_show_heading_number_note_state_and_command() -> None:
    app = drawn(cards)
    assert [one.value for one in app.header] == ["Busiest \\*links\\*"]
    assert [(one.label, one.value) for one in app.metric] == [("Peak link", "80 \\%"), ("Health", "2")]
    assert [one.value for one in app.caption] == ["MF0\\;a\\*b\\*", "Counters"]
    assert [one.value for one in app.markdown] == [
        badge_text(State.LOOK, "1 warning"),
        ":grey-badge[:material/help: never read]",
        ":green-badge[:material/check_circle: OK]",
    ]
    (chart,) = app.get("vega_lite_chart")
    assert "Peak link over time" in chart.proto.spec
    assert [one.value for one in app.code] == ["almanac ingest --cluster c COUNTERS"]


def test_each_state_has_its_own_colour_icon_and_word_and_obeys_no_markup() -> None:
    for look in ("colour", "icon", "word"):
        assert len({getattr(state, look) for state in State}) == len(State) == 4
    assert badge_text(State.LOOK, "1 warning") == ":orange-badge[:material/warning: 1 warning]"
    assert "**x**" not in badge_text(State.ACT, MARKUP)


def test_markup_and_addresses_become_plain_text() -> None:
    for text, expected in (
        *(("node0001", "node0001"), ("a  b\n", "a b"), ("**x**", r"\*\*x\*\*"), ("a_b", r"a\_b")),
        *(("<b>", r"\<b\>"), ("# x\n- y", r"\# x \- y"), (":red[x] $y$ `z`", r"\:red\[x\] \$y\$ \`z\`")),
        *(("www.x", "www\N{WORD JOINER}\\.x"), ("x@y", "x\\@\N{WORD JOINER}y")),
    ):
        assert plain(text) == expected


def linked() -> None:
    import streamlit as st

    from dashboard.shared.bar import Row, job_link, linked_rows, open_job

    other = st.Page(lambda: None, title="Job", url_path="job")
    st.navigation([st.Page(lambda: None, title="Jobs", default=True), other])
    rows = [Row("*a*", ("1", "2"), {"job": "c/1"}), Row("b", ("3", "4"), {"job": "c/2"})]
    linked_rows(other, ("Job", "Gain", "Ranks"), (5, 1, 1), rows)
    job_link(other, "c", "7")
    open_job(other, ["c/8", "c/9"])


def test_each_row_has_a_link_and_its_values() -> None:
    app = drawn(linked)
    app.selectbox(key="job to open").select("c/9").run()
    assert not app.exception, app.exception
    links = [(link.proto.label, link.proto.query_string) for link in app.get("page_link")]
    assert links == [
        (r"\*a\*", "job=c%2F1"),
        ("b", "job=c%2F2"),
        ("Open job 7", "job=c%2F7"),
        ("Open job 9", "job=c%2F9"),
    ]
    assert [text.value for text in app.text] == ["1", "2", "3", "4"]
    assert [caption.value for caption in app.caption] == ["Job", "Gain", "Ranks"]


# --- what is drawn outside of the part that refreshes -------------------------------------------------------


def parted() -> None:
    """A page with a part that a button adds, and a button in that part that removes it."""
    import streamlit as st

    from dashboard.shared import cards as outside

    def part() -> None:
        st.text("the part")
        st.button("Close", on_click=outside.remove, args=("part",))

    outside.begin(st.query_params.get("page", "Jobs"))
    st.text(f"has it: {outside.has('part')}")
    if st.button("Open"):
        outside.add("part", part)
    outside.draw()


def opened(**given: str) -> AppTest:
    app = drawn(parted, **given)
    assert shown(app.button[0].click().run())
    return app


def shown(app: AppTest) -> bool:
    """Whether the part is shown; the page knows it while it is drawn."""
    assert not app.exception
    texts = [element.value for element in app.text]
    assert texts in (["has it: False"], ["has it: True", "the part"])
    return len(texts) == 2


def test_a_part_is_drawn_until_it_is_removed_or_the_page_or_its_job_changes() -> None:
    app = opened()
    assert shown(app.run())
    assert not shown(app.button[1].click().run())
    assert not shown(app.run())
    app = opened()
    for name in ("Fabric", "Jobs"):  # it stays gone
        app.query_params["page"] = name
        assert not shown(app.run())
    for first, second, stays in (
        ({"job": "tree/7"}, {"job": "tree/8"}, False),
        ({"job": "none", "placement": "p1"}, {"job": "none", "placement": "p2"}, False),
        ({"job": "tree/7", "placement": "p1"}, {"job": "tree/7", "placement": "p2"}, True),
    ):
        app = opened(**first)
        app.query_params.update(second)
        assert shown(app.run()) == stays


# --- tables -------------------------------------------------------------------------------------------------


@given(st.lists(st.text(max_size=12).filter(lambda text: "\0" not in text and "\r" not in text), max_size=5))
def test_no_cell_of_a_file_begins_as_a_formula(names: list[str]) -> None:
    text = csv_text(pd.DataFrame({"name": names, "number": -1.5}))
    read = pd.read_csv(io.StringIO(text), keep_default_na=False, dtype={"name": str})
    assert not any(str(name).startswith(("=", "+", "-", "@", "\t")) for name in read["name"])
    assert (read["number"] == -1.5).all()
    assert [name.removeprefix("'") for name in read["name"]] == [name.removeprefix("'") for name in names]


def test_a_file_has_plain_times_nothing_and_base_units_behind_its_columns() -> None:
    at = pd.to_datetime(pd.Series(["2026-01-02T03:04:05", None]))
    assert csv_text(pd.DataFrame({"at": at, "n": [1.0, np.nan]})) == "at,n\n2026-01-02T03:04:05Z,1.0\n,\n"
    table = pd.DataFrame({"load": [1.0], "job": ["7"]})
    assert csv_text(table, {"load": "s", "not there": "B"}) == "load (s),job\n1.0,7\n"
    assert list(table.columns) == ["load", "job"]


def selectable() -> None:
    import pandas as pd
    import streamlit as st

    from dashboard.shared.cards import keep_selected

    names = st.session_state["names"]
    keep_selected("table", names)
    st.dataframe(pd.DataFrame({"name": names}), on_select="rerun", selection_mode="multi-row", key="table")


def test_rows_that_moved_stay_selected_and_one_that_is_gone_does_not() -> None:
    app = app_of(selectable)
    app.session_state["table"] = {"selection": {"rows": [0, 2], "columns": [], "cells": []}}
    for names, rows in ((["b", "c", "d"], [0, 2]), (["a", "b", "c"], [1])):
        app.session_state["names"] = names
        app.run()
        assert not app.exception
        assert app.session_state["table"]["selection"]["rows"] == rows
