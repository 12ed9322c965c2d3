"""Every page of the navigation can be linked to."""

from __future__ import annotations

from dataclasses import fields

from dashboard.app import MOVED, PAGES
from dashboard.state.site import Site


def test_the_site_has_a_field_for_each_page_of_the_navigation() -> None:
    names = {field.name for field in fields(Site)} - {"viewer", "searches", "limits"}
    assert names == {entry.name for entry in PAGES}


def test_every_old_address_leads_to_a_page() -> None:
    assert {moved.page for moved in MOVED.values()} <= {entry.name for entry in PAGES}
    before = "overview what-if job interference history runs circuits changes ingest"
    assert set(before.split()) == set(MOVED)
