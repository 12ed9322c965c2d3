"""Figures in README.md: some of those in the page of performance."""

from __future__ import annotations

from bench.documented.passage import Passage, at
from bench.documented.performance import DASHBOARD, PLACED, worst_link_instances, worst_links

PAGE = "README.md"
PASSAGES = (
    Passage(
        "On disk the base takes {:.0f} MB, with the web pages {:.0f} MB.",
        "install.json",
        at("sizes/base_disk_bytes / 1e6", "sizes/dashboard_disk_bytes / 1e6"),
    ),
    Passage(
        "forwarding tables ({:.0f} MB of text) | {:.1f} s |",
        "ingest.json",
        at("sizes/dump_bytes / 1e6", "steps/ingest_first/seconds"),
    ),
    Passage(
        "with 30 changed cables | {:.1f} s |", "ingest_large.json", at("steps/ingest_changed_back/seconds")
    ),
    Passage(
        "three-level fat tree | {:.2f} s |",
        "scale.json",
        at("curves/exact congestion, fat tree/points/100000/seconds"),
    ),
    Passage(
        "worst network link {:.0%} below ranks in order | {:.0f} s |",
        "scale.json",
        at(f"{PLACED}/network_congestion_change / -1", f"{PLACED}/seconds"),
    ),
    Passage(
        "geometric mean of {} instances | {:.2f} |",
        "peers.json",
        lambda found: [worst_link_instances(found), worst_links(10.0)(found)[0]],
    ),
    Passage("click to answer | {:.2f} s |", "dashboard.json", at(DASHBOARD[2])),
)
