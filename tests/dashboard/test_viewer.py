"""What a viewer may see of users: pseudonyms, one user's jobs, paths without folders; links to all pages."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from dashboard.app import PAGES
from dashboard.shared.viewer import EVERYTHING, NOBODY, Access, Site, Viewer, pseudonym

KEY = b"k" * 32


@given(st.text(min_size=1, max_size=12))
def test_names_are_shown_as_they_are_unless_they_are_hidden(user: str) -> None:
    assert Viewer().name(user) == user
    hidden = Viewer(key=KEY).name(user)
    assert hidden == Viewer(key=KEY).name(user) == pseudonym(user, KEY)
    assert hidden.startswith("user-")
    assert user not in hidden or len(user) < 3
    assert hidden != Viewer(key=b"other" * 8).name(user)


def test_pseudonyms_differ_are_an_hmac_no_plain_hash_and_lead_back_to_known_users_who_may_be_seen() -> None:
    viewer = Viewer(key=KEY)
    assert viewer.name("") == ""
    assert len({pseudonym(f"user{k}", KEY) for k in range(5000)}) == 5000
    plain = base64.b32encode(hashlib.sha256(b"ann").digest()).decode().lower()
    assert not plain.startswith(pseudonym("ann", KEY).removeprefix("user-"))
    assert viewer.real(viewer.name("bob"), ["ann", "bob"]) == "bob"
    assert viewer.real("bob", ["ann", "bob"]) is None
    assert Viewer(key=KEY, only="ann").real(viewer.name("bob"), ["ann", "bob"]) is None


def test_only_one_users_jobs_are_seen_and_none_of_nobody() -> None:
    assert [Viewer(only="ann").sees(user) for user in ("ann", "bob", "")] == [True, False, False]
    assert Viewer().sees("")
    assert not any(NOBODY.sees(user) for user in ("", "ann", "root"))


def test_messages_lose_the_folders_that_may_be_names() -> None:
    for text, shown in (
        ("/home/ann/scan.txt:12: bad 'line'", "scan.txt:12: bad 'line'"),
        ("data/ann/x.txt:3: bad", "x.txt:3: bad"),
        ("cannot read '/scratch/ann/x y.txt'", "cannot read 'x y.txt'"),
        ("C:\\Users\\ann\\x.txt: bad", "x.txt: bad"),
        ("only 3/4 of 25 GB/s, and/or so", "only 3/4 of 25 GB/s, and/or so"),
    ):
        assert Viewer(key=KEY).message(text) == shown
        assert Viewer().message(text) == text
        assert Viewer(key=KEY).path("/home/ann/my scans/a.txt") == "a.txt"
        assert Viewer().path("/home/ann/a.txt") == "/home/ann/a.txt"


def test_a_viewer_is_everybody_one_user_or_named_by_a_claim_or_a_header_and_no_key_is_printed() -> None:
    assert EVERYTHING.viewer({}, {}) == Viewer()
    assert Access(only="ann").viewer({"sub": "bob"}, {"X-User": "bob"}) == Viewer(only="ann")
    access = Access(only="header:X-Forwarded-User")
    assert access.viewer({}, {"X-Forwarded-User": "ann"}) == Viewer(only="ann")
    assert access.viewer({"X-Forwarded-User": "ann"}, {}) is None
    access = Access(key=KEY, only="login:preferred_username", operators=frozenset({"root"}))
    assert access.viewer({"preferred_username": "ann"}, {}) == Viewer(key=KEY, only="ann")
    assert access.viewer({"preferred_username": "root"}, {}) == Viewer()
    for claims in ({}, {"email": "ann"}, {"preferred_username": ""}, {"preferred_username": None}):
        assert access.viewer(claims, {"preferred_username": "ann"}) is None
    assert "kkk" not in repr(Viewer(key=KEY)) + repr(Access(key=KEY))


def test_the_site_has_a_field_for_each_page() -> None:
    pages = {entry.name for entry in PAGES}
    assert {field.name for field in fields(Site)} - {"viewer", "searches", "limits"} == pages
