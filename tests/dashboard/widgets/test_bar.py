"""The bar: what it stores in the address, and what it shows of the clusters."""

from __future__ import annotations

from datetime import timedelta

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_app import address
from tests.support.apps import app_of


def script() -> None:
    from datetime import UTC, datetime, timedelta

    import streamlit as st

    from dashboard.widgets import bar
    from registry.fabrics.fabrics import ClusterInfo

    now = datetime.now(UTC)
    sizes = dict.fromkeys(
        ("observations", "contents", "hosts", "switches", "adapters", "cables", "version"), 1
    )
    infos = {
        name: ClusterInfo(
            name=name,
            snapshot="s",
            first_observed_at=now - timedelta(days=2),
            last_observed_at=now - timedelta(hours=hours, seconds=5),
            **sizes,
        )
        for name, hours in (("alpha", 3), ("beta", 5))
    }
    with bar.draw("Title", list(infos), all_clusters=False):
        bar.ages(infos, now)
    st.text(f"{bar.time_range().total_seconds()} {bar.is_live()}")


def shown(**given: str) -> AppTest:
    app = app_of(script)
    app.query_params.update(given)
    app.run()
    assert not app.exception
    return app


def test_the_first_cluster_and_a_day_are_the_default() -> None:
    app = shown()
    assert app.title[0].value == "Title"
    assert app.selectbox(key="choose cluster").value == "alpha"
    assert "scan 3 hours ago" in app.caption[0].value
    assert app.text[0].value == f"{timedelta(days=1).total_seconds()} True"


def test_another_cluster_removes_what_belongs_to_the_former_one() -> None:
    app = shown(link="leaf1:3", tab="changes", range="7d")
    app.selectbox(key="choose cluster").set_value("beta").run()
    assert address(app) == {"cluster": "beta", "tab": "changes", "range": "7d"}
    assert "scan 5 hours ago" in app.caption[0].value
    app.selectbox(key="choose cluster").set_value("alpha").run()
    assert not app.exception
    assert address(app) == {"cluster": "alpha", "tab": "changes", "range": "7d"}


def test_time_range_and_refresh_are_stored_in_the_address() -> None:
    app = shown()
    app.selectbox(key="choose range").set_value("7d").run()
    app.toggle(key="live").set_value(False).run()
    assert address(app) == {"range": "7d", "live": "off"}
    assert app.text[0].value == f"{timedelta(days=7).total_seconds()} False"
    app.toggle(key="live").set_value(True).run()
    assert address(app) == {"range": "7d"}


@pytest.mark.parametrize("given", [{"cluster": "gamma"}, {"job": "gamma/1"}])
def test_an_unknown_cluster_is_not_shown_as_another_one(given: dict[str, str]) -> None:
    app = shown(**given)
    assert app.selectbox(key="choose cluster").value is None
    assert "scan" not in app.caption[0].value


def test_the_cluster_of_a_job_is_shown() -> None:
    assert shown(job="beta/17").selectbox(key="choose cluster").value == "beta"


def test_a_wall_has_no_controls() -> None:
    app = shown(wall="1")
    assert not app.selectbox
    assert not app.toggle
    assert "scan 3 hours ago" in app.caption[0].value
