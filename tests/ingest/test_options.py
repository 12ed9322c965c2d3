"""Options of an ingest."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ingest.options import Options
from registry.errors import InvalidValue

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("values", [{"divide": 0}, {"parts": 0}, {"domain": -1}, {"collectives": "star"}])
def test_options_out_of_range_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        Options(**values)  # type: ignore[arg-type]


def test_the_time_of_an_observation_is_that_of_the_option_or_of_the_file() -> None:
    assert Options().time(WHEN) == WHEN
    assert Options(observed_at=datetime(2025, 1, 1)).time(WHEN) == datetime(2025, 1, 1, tzinfo=UTC)
