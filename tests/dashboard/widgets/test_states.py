"""States have a colour, an icon and a word, and text from files stays text."""

from __future__ import annotations

from dashboard.widgets.states import State, badge_text
from tests.dashboard.conftest import MARKUP
from tests.support.apps import app_of


def test_each_state_has_its_own_colour_icon_and_word() -> None:
    for look in ("colour", "icon", "word"):
        assert len({getattr(state, look) for state in State}) == len(State) == 4


def test_a_badge_shows_text_or_the_word_of_its_state() -> None:
    def script() -> None:
        from dashboard.widgets.states import State, badge

        badge(State.LOOK, "1 warning")
        badge(State.OK)

    shown = [one.value for one in app_of(script).run().markdown]
    assert shown == [
        ":orange-badge[:material/warning: 1 warning]",
        ":green-badge[:material/check_circle: OK]",
    ]
    assert shown[0] == badge_text(State.LOOK, "1 warning")


def test_a_badge_does_not_obey_markup() -> None:
    assert "**x**" not in badge_text(State.ACT, MARKUP)
