"""Reports of chains compared with the default portfolio."""

from __future__ import annotations

import math

from bench.quality.members import CHAINS, DEFAULT, markdown, summary
from mapping.placement.catalog import Chain


def test_every_chain_can_be_parsed() -> None:
    for chains in CHAINS.values():
        for text in chains:
            assert str(Chain.parse(text)) == text


def test_a_chain_is_told_beside_the_default() -> None:
    slow, fast, *others = CHAINS["hop-bytes"]
    found = {
        name: {"hop-bytes": {DEFAULT: 10.0, slow: 20.0, fast: value, **dict.fromkeys(others, 40.0)}}
        for name, value in (("a", 5.0), ("b", 10.0))
    }
    rows = {row["chain"]: row for row in summary(found, "hop-bytes")}
    assert rows[DEFAULT]["geometric_mean_over_default"] == 1.0
    assert rows[DEFAULT]["best_on"] == 1
    assert rows[slow]["geometric_mean_over_default"] == 2.0
    assert math.isclose(rows[fast]["geometric_mean_over_default"], math.sqrt(0.5))
    assert (rows[fast]["best_on"], rows[fast]["least"], rows[fast]["most"]) == (2, ["a", 0.5], ["b", 1.0])
    page = markdown(
        {
            "date": "now",
            "machine": {"processor": "p", "cores": 2},
            "seconds": 3.0,
            "seed": 0,
            "summary": {"hop-bytes": summary(found, "hop-bytes")},
        }
    )
    assert f"| {fast} | 0.707 | 2 of 2 | 0.500 (a) | 1.000 (b) |" in page
