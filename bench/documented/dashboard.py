"""Figures in docs/how-to/dashboard.md."""

from __future__ import annotations

from bench.documented.passage import Passage, Record, at
from bench.documented.performance import warm_pages

PAGE = "docs/how-to/dashboard.md"
PASSAGES = (
    Passage(
        "pages are ready\nin {:.1f} to {:.1f} s when warm ({:.0f} s)",
        "dashboard.json",
        lambda found: [*warm_pages(found), *at("limits/warm_seconds")(found)],
    ),
    Passage(
        "when warm (2 s), in {:.1f} to {:.1f} s for the first browser",
        "dashboard.json",
        lambda found: [*_spread(found, "cold_seconds", found)],
    ),
    Passage(
        "placements (load average {:.1f} when it began",
        "dashboard.json",
        at("load_average"),
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
    Passage(
        "alone beside ours (load average {:.1f} when it began)",
        "dashboard.json",
        at("small/load_average"),
    ),
    Passage(
        "an empty page of Streamlit after {:.1f} s, one with a\ntable and a chart after {:.1f} s, and ours",
        "dashboard.json",
        lambda found: _floor(found, "warm_seconds"),
    ),
    Passage(
        "ours after {:.1f} to {:.1f} s ({:.0f} s)",
        "dashboard.json",
        lambda found: [*_spread(found, "warm_seconds"), *at("limits/warm_seconds")(found)],
    ),
    Passage(
        "them before after {:.1f} s, {:.1f} s, and {:.1f} to {:.1f} s",
        "dashboard.json",
        lambda found: [*_floor(found, "returning_seconds"), *_spread(found, "returning_seconds")],
    ),
    Passage(
        "the server waits {:.1f} to {:.1f} s ({:.0f} s)",
        "dashboard.json",
        lambda found: [*_spread(found, "cold_seconds"), *at("limits/cold_seconds")(found)],
    ),
    Passage(
        "takes at most {:.2f} s, of one refresh at most {:.2f} s; that sends\nat most {:.0f} kB",
        "dashboard.json",
        lambda found: [
            _spread(found, "warm_server_cpu_seconds")[1],
            _spread(found, "refresh_server_cpu_seconds")[1],
            _spread(found, "refresh_bytes")[1] / 1e3,
        ],
    ),
    Passage(
        "used {:.0f} MB at the start, {:.0f} MB at the end, and the largest page {:.1f} and {:.1f} MB",
        "dashboard.json",
        lambda found: _hour(found),
    ),
)


def _spread(found: Record, name: str, of: Record | None = None) -> tuple[float, float]:
    """Return the least and the largest value of the pages: with 2,300 hosts, or of another record."""
    values = [page[name] for page in (of or found["small"])["pages"].values() if name in page]
    return min(values), max(values)


def _floor(found: Record, name: str) -> list[float]:
    """Return a value of the pages of Streamlit alone."""
    return [page[name] for page in found["small"]["floor"].values()]


def _hour(found: Record) -> list[float]:
    """Return the server's memory before and after an hour of refreshes, and that of the largest page."""
    first, *_, last = found["small"]["hour"]["at_start_middle_and_end"]
    return [first["server_mb"], last["server_mb"], max(first["pages_mb"]), max(last["pages_mb"])]
