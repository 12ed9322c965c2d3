"""Figures in docs/reference/formats/routes-and-counters.md."""

from __future__ import annotations

from bench.documented.passage import Passage, at

PAGE = "docs/reference/formats/routes-and-counters.md"
PASSAGES = (
    Passage(
        "never held: {:.1f} GB of tables, those of 20,000 hosts, took {:.0f} s and {:.2f} GB of memory",
        "ingest_large.json",
        at("sizes/dump_bytes / 1e9", "steps/parse_tables/seconds", "steps/parse_tables/peak_memory_gb"),
    ),
)
