"""Figures in docs/explanation/search-congestion.md."""

from __future__ import annotations

from bench.documented.passage import Passage

PAGE = "docs/explanation/search-congestion.md"
PASSAGES = (
    Passage(
        "comes nearest to the default portfolio: {:.3f} of its result",
        "members.json",
        lambda found: [
            min(one["geometric_mean_over_default"] for one in found["summary"]["congestion"][1:]),
        ],
    ),
    Passage(
        "`greedy+congestion-descent` reaches {:.2f} of its worst link",
        "members.json",
        lambda found: [
            found["instances"]["percs9248/nlpkkt80_1792"]["congestion"][name]
            / found["instances"]["percs9248/nlpkkt80_1792"]["congestion"]["default"]
            for name in ("greedy+congestion-descent",)
        ],
    ),
)
