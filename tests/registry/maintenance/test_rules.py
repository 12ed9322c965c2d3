"""Rules of retention: what they keep, and texts that are none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import InvalidValue
from registry.maintenance.rules import Item, Keep

NEW = datetime(2026, 3, 31, 23, tzinfo=UTC)
HOURS = [Item(str(hour), NEW - timedelta(hours=hour)) for hour in range(24 * 60)]
"""One item an hour over 60 days; item 0 is the newest, item 24 the last one of the day before."""


def kept(rule: str, items: list[Item] = HOURS, now: datetime = NEW) -> list[int]:
    gone = Keep.parse(rule).delete(items, now)
    return [int(item.id) for item in items if item.id not in gone]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("all", [*range(1440)]),
        ("daily", [*range(0, 1440, 24)]),
        # 31 March 2026 is a Tuesday: the last items of the weeks before are those of Sunday, 23 h
        ("weekly", [0, *range(48, 1440, 168)]),
        ("daily after 30 days", [*range(720), *range(720, 1440, 24)]),
        ("none after 2 days", [*range(48)]),
        # a week that is half daily, half weekly keeps its last one of the older half
        (
            "daily after 1 day, weekly after 10 days, none after 40 days",
            [*range(24), *range(24, 240, 24), 240, 384, 552, 720, 888],
        ),
    ],
)
def test_the_last_of_each_period_is_kept(rule: str, expected: list[int]) -> None:
    assert kept(rule) == expected


def test_the_newest_of_each_group_is_never_deleted() -> None:
    items = [Item(str(n), NEW - timedelta(hours=n), ("odd" if n % 2 else "even",)) for n in range(10)]
    assert kept("newest 2", items) == [0, 1, 2, 3]
    assert kept("newest 0", items) == [0, 1]
    items = [Item("0", NEW), Item("1", NEW - timedelta(days=900), ("old",))]
    assert kept("none after 1 day", items) == [0, 1]
    # a clock that is wrong deletes nothing more
    assert kept("none after 90 days", now=NEW + timedelta(days=36500)) == list(range(1440))


@given(st.lists(st.integers(0, 5000), unique=True, max_size=60), st.sampled_from(["daily", "weekly"]))
def test_one_of_each_period_is_kept_and_pruning_again_deletes_nothing(hours: list[int], rule: str) -> None:
    items = [Item(str(hour), NEW - timedelta(hours=hour)) for hour in hours]
    left = [item for item in items if item.id not in Keep.parse(rule).delete(items, NEW)]

    def periods(some: list[Item]) -> list[Any]:
        return [item.at.date() if rule == "daily" else item.at.isocalendar()[:2] for item in some]

    assert sorted(set(periods(items))) == sorted(periods(left))
    assert Keep.parse(rule).delete(left, NEW) == set()


@pytest.mark.parametrize(
    "text",
    [
        *("", "some", "daily after", "daily after 3", "daily after x days", "newest", "newest -1", "monthly"),
        *(
            "newest 3, daily",
            "newest 3 after 5 days",
            "daily after 9 days, weekly after 3 days",
            "daily, daily",
        ),
        "all; none",
    ],
)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match=r"rule|newest|ascend"):
        Keep.parse(text)


def test_blanks_and_capitals_do_not_matter() -> None:
    assert Keep.parse(" Daily  after 1 day ,none after 9 days") == Keep.parse(
        "daily after 1 days, none after 9 days"
    )
