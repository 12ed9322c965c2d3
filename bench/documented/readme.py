"""Figures in README.md."""

from __future__ import annotations

from bench.documented.figure import Figure

PAGE = "README.md"
FIGURES = (
    Figure(
        "forwarding tables (69 MB of text), embedded server | {:.1f} s",
        "ingest.json",
        lambda found: [found["steps"]["ingest_first"]["seconds"]],
    ),
)
