"""The plug-ins follow the rules of Fabric Almanac."""

from __future__ import annotations

from pathlib import Path

import pytest

from almanac.conformance import Rule, rules

SAMPLE = Path(__file__).with_name("sample.neighbours")
RULES = [
    *rules("formats", "neighbours", samples=[SAMPLE]),
    *rules("strategies", "by-volume"),
    *rules("refiners", "adjacent-swaps"),
    *rules("routings", "grid-or-tree"),
    *rules("launchers", "host-list"),
    *rules("checks", "single-cable"),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_rule(rule: Rule) -> None:
    rule()
