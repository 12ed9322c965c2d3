"""JSON of ``almanac selfcheck``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from almanac.output.printing import finite

if TYPE_CHECKING:
    from mapping.selfcheck.oracles import Comparison


def self_check_to_json(name: str, about: str, one: Comparison) -> dict[str, Any]:
    """Return a row of the document of ``almanac selfcheck``."""
    return {
        "check": name,
        "about": about,
        "agrees": one.agrees,
        "compared": one.compared,
        "unit": one.unit,
        "skipped": one.skipped,
        "largest_relative_difference": finite(one.largest_difference),
        "differences": one.differences,
    }
