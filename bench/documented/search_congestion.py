"""Figures in docs/explanation/search-congestion.md."""

from __future__ import annotations

from bench.documented.passage import Passage, Record

PAGE = "docs/explanation/search-congestion.md"


def nearest(found: Record) -> list[object]:
    """Return the chain nearest to the default portfolio on the worst link, and their ratio."""
    value, chain = min(
        (one["geometric_mean_over_default"], one["chain"]) for one in found["summary"]["congestion"][1:]
    )
    return [chain, value]


def most_lost(found: Record) -> list[object]:
    """Return the instance on which a chain is furthest ahead of the default, the chain, and the ratio."""
    value, instance, chain = min(
        (one["least"][1], one["least"][0], one["chain"]) for one in found["summary"]["congestion"][1:]
    )
    return [instance, chain, value]


PASSAGES = (
    Passage("`{}` comes nearest to the default portfolio: {:.3f} of its result", "members.json", nearest),
    Passage(
        "loses most on `{}`, where `{}` reaches {:.2f} of its worst link",
        "members.json",
        most_lost,
    ),
)
