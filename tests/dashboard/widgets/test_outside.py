"""What is drawn outside of the part that refreshes: it stays until removed, or the page shows another job."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.support.apps import app_of


def script() -> None:
    """A page with a part that a button adds, and a button in that part that removes it."""
    import streamlit as st

    from dashboard.widgets import outside

    def part() -> None:
        st.text("the part")
        st.button("Close", on_click=outside.remove, args=("part",))

    outside.begin(st.query_params.get("page", "Jobs"))
    st.text(f"has it: {outside.has('part')}")
    if st.button("Open"):
        outside.add("part", part)
    outside.draw()


def opened(**address: str) -> AppTest:
    app = app_of(script)
    app.query_params.update(address)
    app.run().button[0].click().run()
    assert shown(app)
    return app


def shown(app: AppTest) -> bool:
    """Whether the part is shown; the page knows it while it is drawn."""
    assert not app.exception
    texts = [element.value for element in app.text]
    assert texts in (["has it: False"], ["has it: True", "the part"])
    return len(texts) == 2


def test_a_part_is_drawn_until_it_is_removed() -> None:
    app = opened()
    assert shown(app.run())
    assert not shown(app.button[1].click().run())
    assert not shown(app.run())


def test_a_part_is_gone_on_another_page_and_stays_gone() -> None:
    app = opened()
    app.query_params["page"] = "Fabric"
    assert not shown(app.run())
    app.query_params["page"] = "Jobs"
    assert not shown(app.run())


def test_a_part_is_gone_if_the_address_names_another_job_or_another_placement_without_a_job() -> None:
    for first, second, stays in (
        ({"job": "tree/7"}, {"job": "tree/8"}, False),
        ({"job": "none", "placement": "p1"}, {"job": "none", "placement": "p2"}, False),
        ({"job": "tree/7", "placement": "p1"}, {"job": "tree/7", "placement": "p2"}, True),
    ):
        app = opened(**first)
        app.query_params.update(second)
        assert shown(app.run()) == stays
