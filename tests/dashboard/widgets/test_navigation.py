"""Lists whose rows link to other pages."""

from __future__ import annotations

from tests.support.apps import app_of


def page() -> None:
    import streamlit as st

    from dashboard.widgets.navigation import Row, job_link, linked_rows, open_job

    other = st.Page(lambda: None, title="Job", url_path="job")
    st.navigation([st.Page(lambda: None, title="Jobs", default=True), other])
    rows = [Row("*a*", ("1", "2"), {"job": "c/1"}), Row("b", ("3", "4"), {"job": "c/2"})]
    linked_rows(other, ("Job", "Gain", "Ranks"), (5, 1, 1), rows)
    job_link(other, "c", "7")
    open_job(other, ["c/8", "c/9"])


def test_each_row_has_a_link_and_its_values() -> None:
    app = app_of(page)
    app.run()
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
