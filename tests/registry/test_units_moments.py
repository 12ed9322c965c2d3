"""Times that users write: ISO 8601, or a span before now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from registry.units import moment_of

NOW = datetime(2026, 11, 28, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("7d", timedelta(days=7)),
        ("12h", timedelta(hours=12)),
        ("30m", timedelta(minutes=30)),
        ("30 min ago", timedelta(minutes=30)),
        ("90s", timedelta(seconds=90)),
        (" 2W ", timedelta(weeks=2)),
        ("0d", timedelta()),
        ("now", timedelta()),
        ("Yesterday", timedelta(days=1)),
    ],
)
def test_a_span_is_before_now(text: str, before: timedelta) -> None:
    assert moment_of(text, NOW) == NOW - before
    assert moment_of(text, NOW.astimezone(timezone(timedelta(hours=3)))).tzinfo is UTC


@pytest.mark.parametrize(
    "text", ["2026-11-21T09:00:00+01:00", "2026-11-21T08:00:00Z", "2026-11-21T08:00", "20261121T08"]
)
def test_a_time_is_in_utc_unless_it_has_a_zone(text: str) -> None:
    assert moment_of(text, NOW) == datetime(2026, 11, 21, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "d",
        "7",
        "7x",
        "-7d",
        "7.5d",
        "soon",
        "\N{ARABIC-INDIC DIGIT ONE}d",
        "999999999w",
        "7d 3h",
        "0001-01-01T00:00+23:00",
    ],
)
def test_a_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Invalid isoformat|before the year 1"):
        moment_of(text, NOW)
