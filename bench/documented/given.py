"""List passages of README and docs whose numbers are not measured: definitions, versions, limits, papers."""

from __future__ import annotations

GIVEN: dict[str, tuple[str, ...]] = {
    "README.md": (  # the numbers of the demonstration are compared by tests/dashboard/test_dashboard_demo.py
        "(425 us against 508 and 574 us)",
        "(1.81 times the present throughput)",
        "(98 s in its paper)",
        "10 s of search: worst link",
        "the same at 30 s",
        "1 s and 10 s of search",
        "pan and zoom, 95%",
        "at least 60% more",
        "(3 minutes in the paper)",
    ),
    "docs/cookbook.md": ("at least 90% of the load",),
    "docs/dashboard.md": (
        "at least 5 %",
        "95 % of the frames",
    ),
    "docs/fabric-map.md": ("is less than 1 MB",),
    "docs/formats.md": (
        "lines of 10 MB",
        "20 s of processor time",
    ),
    "docs/formats/infiniband.md": (
        "2.5 SDR, 5 DDR, 10 QDR, FDR10, 14 or 14.0625 FDR, 25 or 25.78125 EDR",
        "50 or 53.125 HDR, 100 or 106.25",
        "200 or 212.5 XDR",
        "| SDR | 2.5 |",
        "| FDR10 | 10.3125 |",
        "| FDR | 14.0625 | 64b/66b | 13.64 |",
        "| EDR | 25.78125 |",
        "| HDR | 53.125 |",
        "| NDR | 106.25 |",
        "| XDR | 212.5 |",
        "*Could be 53.125 Gbps*",
    ),
    "docs/formats/jobs.md": (
        "| v0.0.38 | 22.05 |",
        "| 23.02, 23.11 |",
        "| 24.05 and later |",
        "newer than 22.05",
    ),
    "docs/formats/profiles.md": ("(3% imbalance, edge cut)",),
    "docs/formats/routes-and-counters.md": ("more than 10 minutes in the future",),
    "docs/generators.md": (
        "| PERCS | 32 s |",
        "their sum within 1%",
        "with their rows and 95% and 93% of their",
    ),
    "docs/history.md": (
        "median + 3 * 1.4826 * median(|ratio - median|) and ratio >= 1.05 * median",
        "the factor 1.4826",
    ),
    "docs/mapping/benchmarks.md": (
        "at 1, 10 and 30 s, for hop-bytes",
        "two threads in 10 s compared with one in 18 s",
        "within 2% of the certified bound",
        "At 1 s, set-up",
        "at 10 and 30 s it is part of it",
        "Hop-bytes at 1 and 10 s are",
        "at 10 s (",
        "at 30 s (",
        "At 1 s one instance",
        "Single chains in 1 s",
    ),
    "docs/mapping/hand-back.md": ("takes 5 s by default",),
    "docs/mapping/metrics-and-bounds.md": (
        "`floor` (1%)",
        '"at most 1.31 times the best possible, certified by nested-cuts"',
    ),
    "docs/mapping/partition-for-topology.md": (
        "max(P^1.5, 100)",
        "(imbalance 1.05)",
        "removes less than 2% of the vertices",
    ),
    "docs/mapping/search-congestion.md": (
        "by itself in 1 s",
        "| `hottest`, `coldest` | 0.3, 0 |",
        "| `screen` | 0.5 |",
        "A `coldest` of 0 means 0.1 with one worker and 0.01 with several. With several workers 0.1 is",
    ),
    "docs/mapping/search-hop-bytes.md": (
        "falls geometrically to 0.002: from 0.25 if the descent gained 1% or more",
        "from 0.01 if it gained less",
        "again, the last 3%",
        "a table of 1 MB",
        "Two threads in 10 s compared with one in 18 s",
    ),
    "docs/mapping/simulation-evidence.md": ("range of 95% of 500 resamples",),
    "docs/simulate.md": ("95, 99, 99.9, 100",),
}
