"""Every option that takes a time takes a span before now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import pytest

from almanac.options.common import Time
from almanac.reference import commands


@pytest.mark.parametrize(("text", "days"), [("7d", 7), ("yesterday", 1), ("48h", 2)])
def test_a_span_is_before_now(text: str, days: int) -> None:
    before = datetime.now(UTC) - timedelta(days=days)
    found = Time().convert(text, None, None)
    assert before <= found <= datetime.now(UTC) - timedelta(days=days)


def test_what_is_no_time_is_a_usage_error_with_examples() -> None:
    with pytest.raises(click.BadParameter, match=r"'7x' is not a time such as .*, 7d, 12h or yesterday"):
        Time().convert("7x", None, None)


def test_options_of_times_have_one_type() -> None:
    named = {"at", "since", "observed_at", "start", "end"}
    found = [
        option
        for _, command in commands()
        for option in command.params
        if isinstance(option, click.Option) and option.name in named and option.opts != ["--start"]
    ]
    assert len(found) >= 15
    assert all(isinstance(option.type, Time) for option in found)
