"""Controls store their value in the page's address, and show what the address holds."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.support.apps import app_of


def controls() -> None:
    from datetime import UTC, datetime

    from dashboard.figures.over_time import change_marks
    from dashboard.widgets.controls import (
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
    found = {
        "cluster": any_of("cluster", ["a", "b"], resets=("page",)),
        "colour": toggle("Colour", "colour", {"red": "Red", "blue": "Blue"}, "red"),
        "text": text_field("Job", "text", resets=("page",)),
        "gain": at_least("Gain", "gain"),
        "time": moment("Time", "at", first, last),
        "start": page_start(10, "page"),
    }
    timeline("Time", "at", first, {last: "wiring"}, change_marks)
    pager(25, 10, "page", "jobs")
    import streamlit as st

    st.session_state["found"] = found


def run(**address: str) -> AppTest:
    app = app_of(controls)
    app.query_params.update(address)
    app.run()
    assert not app.exception, app.exception
    return app


def address(app: AppTest) -> dict[str, str]:
    return {name: value[0] if isinstance(value, list) else value for name, value in app.query_params.items()}


def test_the_address_holds_the_state_of_all_controls() -> None:
    app = run(cluster="b", colour="blue", text="47", gain="1.5", at="2026-01-02T00:00:00", page="2")
    found = app.session_state["found"]
    assert (found["cluster"], found["colour"], found["text"], found["gain"]) == ("b", "blue", "47", 1.5)
    assert found["time"].isoformat() == "2026-01-02T00:00:00+00:00"
    assert found["start"] == 10
    assert "11 to 20 of 25 jobs" in [text.value for text in app.text]
    # the slider shows the last stop before the time
    assert app.select_slider[0].value == "2026-01-01T00:00:00+00:00"


def test_a_choice_changes_the_address_and_resets_other_parameters() -> None:
    app = run(page="3")
    app.selectbox[0].set_value("a").run()
    assert address(app) == {"cluster": "a"}
    app.selectbox[0].set_value(None).run()
    assert address(app) == {}


def test_a_text_is_stored_without_blanks_and_an_empty_one_is_removed() -> None:
    app = run()
    app.text_input[0].set_value(" 47 ").run()
    assert address(app) == {"text": "47"}
    app.text_input[0].set_value("  ").run()
    assert address(app) == {}


def test_the_end_of_the_slider_means_now() -> None:
    app = run(at="2026-01-02T00:00:00")
    app.select_slider[0].set_value("now").run()
    assert address(app) == {}


def test_buttons_turn_pages() -> None:
    app = run()
    back, on = (button for button in app.button if button.label in ("Previous", "Next"))
    assert back.disabled
    on.click().run()
    assert address(app) == {"page": "2"}
    app.button(key="page back").click().run()
    assert address(app) == {}


def test_texts_that_are_no_numbers_or_times_are_reported() -> None:
    warnings = " ".join(one.value for one in run(gain="many", at="soon", colour="green").warning)
    assert "is not a number of 1 or more" in warnings
    assert "is not a time such as" in warnings
    assert "Colour can be red, blue" in warnings


def test_the_slider_stops_at_round_times_and_at_each_change() -> None:
    slider = run(at="2026-01-03T00:00:01").select_slider[0]
    assert slider.value == "2026-01-03T00:00:00+00:00"
    assert [text for text in slider.options if "wiring" in text] == ["03 Jan 00:00 · wiring"]
    assert slider.options[-1] == "now"
    assert 3 <= len(slider.options) <= 102


def test_a_redrawn_field_is_not_set_again_so_that_typing_is_not_lost() -> None:
    app = run(text="47", gain="1.5")
    fields = [*app.text_input, *app.number_input]
    assert all(one.proto.set_value for one in fields)  # the first time, from the address
    app.run()
    assert not any(one.proto.set_value for one in [*app.text_input, *app.number_input])
