"""Options of an ingest."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ingest.options import Options
from registry.errors import InvalidValue

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("divide", {"divide": 0}),
        ("parts", {"parts": 0}),
        ("domain", {"domain": -1}),
        ("collectives", {"collectives": "star"}),
        ("rate", {"rate": 0.0}),
        ("rate", {"rate": -1.0}),
        ("rate", {"rate": float("nan")}),
        ("rate", {"rate": float("inf")}),
        ("hosts", {"hosts": ("a", "a")}),
        ("slots", {"hosts": ("a", "b", "c"), "slots": (1, 2)}),
        ("slots", {"hosts": ("a", "b", "c"), "slots": (0,)}),
        ("slots", {"hosts": ("a", "b", "c"), "slots": ()}),
    ],
)
def test_options_out_of_range_are_refused(field: str, values: dict[str, object]) -> None:
    with pytest.raises(InvalidValue, match=rf"^Options\.{field}"):
        Options(**values)  # type: ignore[arg-type]


def test_the_time_of_an_observation_is_that_of_the_option_or_of_the_file() -> None:
    assert Options().time(WHEN) == WHEN
    assert Options(observed_at=datetime(2025, 1, 1)).time(WHEN) == datetime(2025, 1, 1, tzinfo=UTC)
