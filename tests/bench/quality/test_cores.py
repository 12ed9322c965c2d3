"""Reports of two threads compared with one."""

from __future__ import annotations

import math

from bench.quality.cores import markdown, mean


def test_two_threads_are_told_beside_one() -> None:
    found = {
        "a": {"hop-bytes": {"two": 9.0, "one": 10.0}, "congestion": {"two": 2.0, "one": 1.0}},
        "b": {"hop-bytes": {"two": 10.0, "one": 9.0}, "congestion": {"two": 0.0, "one": 0.0}},
    }
    means = {objective: mean(found, objective) for objective in ("hop-bytes", "congestion")}
    assert math.isclose(means["hop-bytes"], 1.0)
    assert math.isclose(means["congestion"], math.sqrt(2.0))
    page = markdown(
        {
            "date": "now",
            "machine": {"processor": "p", "cores": 2},
            "seconds": {"two": 10.0, "one": 18.0},
            "seed": 0,
            "geometric_mean_of_two_over_one": means,
            "instances": found,
        }
    )
    assert "| a | 0.900 | 2.000 |" in page
    assert "| geometric mean | 1.000 | 1.414 |" in page
