"""Every page of the navigation can be linked to."""

from __future__ import annotations

from dataclasses import fields

from dashboard.app import PAGES
from dashboard.state.site import Site


def test_the_site_has_a_field_for_each_page_of_the_navigation() -> None:
    names = {field.name for field in fields(Site)} - {"viewer", "searches"}
    assert names == {entry.address("_") for entry in PAGES}
    assert PAGES[2].address("-") == "what-if"
