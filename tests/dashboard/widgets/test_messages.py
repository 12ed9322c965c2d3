"""Errors are shown as messages with a remedy, and names as plain text."""

from __future__ import annotations

import pytest

from dashboard.widgets.messages import plain
from tests.support.apps import app_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node0001", "node0001"),
        ("a  b\n", "a b"),
        ("**x**", r"\*\*x\*\*"),
        ("www.x", "www\N{WORD JOINER}\\.x"),
        ("x@y", "x\\@\N{WORD JOINER}y"),
    ],
)
def test_markup_and_addresses_become_plain_text(text: str, expected: str) -> None:
    assert plain(text) == expected


def errors() -> None:
    from dashboard.widgets.messages import show_error, show_nobody, show_unknown
    from registry.errors import DatabaseUnavailable, UnknownName

    show_error(DatabaseUnavailable("bolt://x:1", "connection refused", "start it"))
    show_unknown(UnknownName("cluster", "nrd", ["ndr"]), "cluster")
    show_nobody("")


def test_errors_name_the_remedy_and_the_closest_names_can_be_chosen() -> None:
    app = app_of(errors)
    app.query_params["cluster"] = "nrd"
    app.run()
    assert not app.exception
    shown = "\n".join(error.value for error in app.error)
    assert "The database does not answer" in shown
    assert "There is no cluster" in shown
    assert "your login has no user name" in shown
    assert [code.value for code in app.code] == ["almanac doctor"]
    app.button(key="closest ndr").click().run()
    assert dict(app.query_params) == {"cluster": "ndr"}
