"""Figures in docs/how-to/dashboard.md."""

from __future__ import annotations

from bench.documented.passage import Passage, at
from bench.documented.performance import warm_pages

PAGE = "docs/how-to/dashboard.md"
PASSAGES = (
    Passage(
        "pages are ready in {:.1f} to {:.1f} s when warm ({:.0f} s)",
        "dashboard.json",
        lambda found: [*warm_pages(found), *at("limits/warm_seconds")(found)],
    ),
    Passage(
        "drawn after {:.1f} s ({:.0f} s)",
        "dashboard.json",
        at("fabric/first_drawing_seconds", "limits/first_drawing_seconds"),
    ),
    Passage(
        "panning and zooming take at most {:.0f} ms ({:.0f} ms)",
        "dashboard.json",
        at("fabric/frame_p95_ms", "limits/frame_p95_ms"),
    ),
    Passage(
        "answered in {:.2f} s ({:.0f} s); a page sends at most {:.2f} MB ({:.0f} MB)",
        "dashboard.json",
        lambda found: [
            *at("fabric/click_seconds", "limits/click_seconds")(found),
            max(one["payload_bytes"] for one in found["pages"].values()) / 1e6,
            *at("limits/payload_bytes / 1e6")(found),
        ],
    ),
    Passage(
        "uses {:.2f} GB after all pages ({:.0f} GB)",
        "dashboard.json",
        at("server_memory_gb/after_walks", "limits/server_memory_gb"),
    ),
)
