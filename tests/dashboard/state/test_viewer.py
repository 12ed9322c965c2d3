"""What a viewer may see of users: pseudonyms, one user's jobs, paths without folders."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.state.viewer import EVERYTHING, NOBODY, Access, Viewer, pseudonym

KEY = b"k" * 32
USERS = st.text(min_size=1, max_size=12)


@given(USERS)
def test_names_are_shown_as_they_are_unless_they_are_hidden(user: str) -> None:
    assert Viewer().name(user) == user
    hidden = Viewer(key=KEY).name(user)
    assert hidden == Viewer(key=KEY).name(user) == pseudonym(user, KEY)
    assert hidden.startswith("user-")
    assert user not in hidden or len(user) < 3
    assert hidden != Viewer(key=b"other" * 8).name(user)


def test_pseudonyms_differ_and_are_an_hmac_and_no_plain_hash() -> None:
    assert Viewer(key=KEY).name("") == ""
    assert len({pseudonym(f"user{k}", KEY) for k in range(5000)}) == 5000
    plain = base64.b32encode(hashlib.sha256(b"ann").digest()).decode().lower()
    assert not plain.startswith(pseudonym("ann", KEY).removeprefix("user-"))


def test_a_pseudonym_leads_back_to_a_known_user_who_may_be_seen() -> None:
    viewer = Viewer(key=KEY)
    assert viewer.real(viewer.name("bob"), ["ann", "bob"]) == "bob"
    assert viewer.real("bob", ["ann", "bob"]) is None
    assert Viewer(key=KEY, only="ann").real(viewer.name("bob"), ["ann", "bob"]) is None


def test_only_one_users_jobs_are_seen_and_none_of_nobody() -> None:
    viewer = Viewer(only="ann")
    assert viewer.sees("ann")
    assert not viewer.sees("bob")
    assert not viewer.sees("")
    assert Viewer().sees("")
    assert not any(NOBODY.sees(user) for user in ("", "ann", "root"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/ann/scan.txt:12: bad 'line'", "scan.txt:12: bad 'line'"),
        ("data/ann/x.txt:3: bad", "x.txt:3: bad"),
        ("cannot read '/scratch/ann/x y.txt'", "cannot read 'x y.txt'"),
        ("C:\\Users\\ann\\x.txt: bad", "x.txt: bad"),
        ("only 3/4 of 25 GB/s, and/or so", "only 3/4 of 25 GB/s, and/or so"),
    ],
)
def test_messages_lose_the_folders_that_may_be_names(text: str, shown: str) -> None:
    assert Viewer(key=KEY).message(text) == shown
    assert Viewer().message(text) == text
    assert Viewer(key=KEY).path("/home/ann/my scans/a.txt") == "a.txt"
    assert Viewer().path("/home/ann/a.txt") == "/home/ann/a.txt"


def test_without_limits_everything_is_shown_and_a_named_user_is_the_same_for_everybody() -> None:
    assert EVERYTHING.viewer({}, {}) == Viewer()
    assert Access(only="ann").viewer({"sub": "bob"}, {"X-User": "bob"}) == Viewer(only="ann")


def test_the_viewer_is_named_by_a_claim_of_the_login() -> None:
    access = Access(key=KEY, only="login:preferred_username", operators=frozenset({"root"}))
    assert access.viewer({"preferred_username": "ann"}, {}) == Viewer(key=KEY, only="ann")
    assert access.viewer({"preferred_username": "root"}, {}) == Viewer()
    for claims in ({}, {"email": "ann"}, {"preferred_username": ""}, {"preferred_username": None}):
        assert access.viewer(claims, {"preferred_username": "ann"}) is None


def test_the_viewer_is_named_by_a_header_of_the_proxy() -> None:
    access = Access(only="header:X-Forwarded-User")
    assert access.viewer({}, {"X-Forwarded-User": "ann"}) == Viewer(only="ann")
    assert access.viewer({"X-Forwarded-User": "ann"}, {}) is None


def test_the_key_is_not_in_what_is_printed() -> None:
    assert "kkk" not in repr(Viewer(key=KEY)) + repr(Access(key=KEY))
