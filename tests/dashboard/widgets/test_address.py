"""Parameters of the page's address are set and removed together."""

from __future__ import annotations

from tests.support.apps import app_of


def page() -> None:
    from dashboard.widgets.address import set_address

    set_address(link="a:1", device=None, **{"cluster a": ""})


def test_parameters_are_set_and_those_without_a_value_removed() -> None:
    app = app_of(page)
    app.query_params.update({"device": "b", "at": "now"})
    app.run()
    assert not app.exception
    assert dict(app.query_params) == {"at": "now", "link": "a:1", "cluster a": ""}
