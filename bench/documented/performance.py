"""Figures in the page of performance."""

from __future__ import annotations

from collections.abc import Callable

from bench.documented.passage import Passage, Record, at, row
from bench.papers.circuits import recorded as circuits
from bench.quality.peers.table import summary

PAGE = "docs/explanation/performance.md"
GIVEN_INSTANCES = 6
"""The first instances of the comparison with other tools were given, the others are generated."""
SEARCHES = (
    "ours",
    "the paper's coefficient minimised thoroughly",
    "the same with 4,000 failures in a row",
    "the paper's search as printed",
)
PREDICTORS = (
    "network congestion times hop-bytes",
    "congestion",
    "hop-bytes",
    "congestion on shortest paths",
)
DASHBOARD = (
    "fabric/first_drawing_seconds",
    "fabric/frame_p95_ms",
    "fabric/click_seconds",
    "server_memory_gb/after_walks",
)
PLACED = "curves/placement on hop-bytes/points/100000"


def worst_links(limit: float) -> Callable[[Record], list[float]]:
    """Return a function that reads the geometric means of all instances and of the given ones."""
    return lambda found: [
        one["geometric_mean"]
        for rows in (found["summary"], summary(dict(list(found["instances"].items())[:GIVEN_INSTANCES])))
        for one in rows
        if (one["objective"], one["metric"], one["seconds"]) == ("congestion", "congestion_seconds", limit)
    ]


def worst_link_instances(found: Record) -> int:
    """Return how many instances count for the worst link: no other tool is at the lower limit there."""
    rows = (one for one in found["summary"] if one["metric"] == "congestion_seconds")
    return int(next(rows)["instances"])


def networks_2004(found: Record) -> list[object]:
    """Return for each search the networks with 60% more throughput, all networks, and the median gain."""
    values: list[object] = []
    over = "best random mapping with locality"
    for name in SEARCHES:
        what = f"CG: {name}"
        wins = row(found, f"{what}, networks with 60% more throughput or more", over).split()
        values += [wins[0], wins[2], float(row(found, f"{what}, throughput", over).split()[1].rstrip(","))]
    return values


def predictors(cases: str) -> Callable[[Record], list[float]]:
    """Return a function that reads the rank correlations of metrics with simulated time."""
    return lambda found: [
        float(str(row(found, f"{cases}: {name}, rho", "simulated time")).split()[0]) for name in PREDICTORS
    ]


def warm_pages(found: Record) -> list[float]:
    """Return the least and most median seconds of a page that is ready again."""
    seconds = [one["warm_seconds"] for one in found["pages"].values()]
    return [min(seconds), max(seconds)]


PASSAGES = (
    Passage(
        "the base; with the web pages | {:.0f} MB; {:.0f} MB |",
        "install.json",
        at("sizes/base_disk_bytes / 1e6", "sizes/dashboard_disk_bytes / 1e6"),
    ),
    Passage(
        "`almanac --help` | {:.2f} s; {:.2f} s; {:.2f} s |",
        "install.json",
        at(
            "steps/base/import registry.registry",
            "steps/base/from mapping import place",
            "steps/base/almanac --help",
        ),
    ),
    Passage(
        "forwarding tables ({:.0f} MB of text), embedded server | {:.1f} s |",
        "ingest.json",
        at("sizes/dump_bytes / 1e6", "steps/ingest_first/seconds"),
    ),
    Passage("the same again, unchanged | {:.1f} s |", "ingest.json", at("steps/ingest_unchanged/seconds")),
    Passage("its tables from the graph | {:.2f} s |", "ingest.json", at("steps/read_back/seconds")),
    Passage(
        "same bytes again | {:.1f} s; {:.1f} s; {:.1f} s; {:.2f} s |",
        "ingest_large.json",
        at(
            *(
                f"steps/{name}/seconds"
                for name in ("parse", "save_first", "ingest_changed_back", "ingest_same_bytes")
            )
        ),
    ),
    Passage(
        "its forwarding tables, {:.1f} GB of text, {:.2f} GB of memory | {:.0f} s |",
        "ingest_large.json",
        at("sizes/dump_bytes / 1e9", "steps/parse_tables/peak_memory_gb", "steps/ingest_tables/seconds"),
    ),
    Passage(
        "{:.0f} MB of `sacct --json`, {:.2f} GB of memory | {:.0f} s |",
        "ingest_jobs.json",
        at("sizes/file_bytes / 1e6", "steps/ingest_first/peak_memory_gb", "steps/ingest_first/seconds"),
    ),
    Passage(
        "the version before (numpy imported) | {:.2f} s; {:.2f} s; {:.2f} |",
        "known_placement.json",
        at(
            "steps/known placement/wall_seconds",
            "steps/known placement/processor_seconds",
            "steps/ratio of pairs/wall_seconds",
        ),
    ),
    Passage("pairs of ranks from CSV | {:.1f} s |", "ingest_profile.json", at("steps/ingest/seconds")),
    Passage(
        "1,728 ranks, shuffled | {:.2f} s |", "congestion.json", at("cases/torus_shuffled/congestion_seconds")
    ),
    Passage(
        "2,304 hosts, 100,000 pairs | {:.2f} s |",
        "congestion.json",
        at("cases/director_tables/congestion_seconds"),
    ),
    Passage(
        "PERCS with 9,248 hosts | {:.2f} s |",
        "scale.json",
        at("curves/exact congestion, PERCS/points/1792/seconds"),
    ),
    Passage(
        "three-level fat tree | {:.2f} s |",
        "scale.json",
        at("curves/exact congestion, fat tree/points/100000/seconds"),
    ),
    Passage(
        "hop-bytes {:.0%}, worst network link {:.0%} below ranks in order | {:.0f} s, {:.1f} GB |",
        "scale.json",
        at(
            f"{PLACED}/hop_bytes_change / -1",
            f"{PLACED}/network_congestion_change / -1",
            f"{PLACED}/seconds",
            f"{PLACED}/peak_memory_gb",
        ),
    ),
    Passage(
        "512 ranks; 64 switches | {:.3f} s; {:.3f} s |",
        "scale.json",
        at("curves/OHTMA/points/512/seconds", "curves/equivalent distances/points/64/seconds"),
    ),
    Passage(
        "mean of {} instances; of the four among them that were given | {:.2f}; {:.2f} |",
        "peers.json",
        lambda found: [worst_link_instances(found), *worst_links(10.0)(found)],
    ),
    Passage("the same at 30 s | {:.3f}; {:.3f} |", "peers.json", worst_links(30.0)),
    Passage(
        "other tools, {} instances; {:.3f} in the closest case | {:.2f}; {:.2f} |",
        "peers.json",
        at(
            "summary/0/instances", "summary/1/largest", "summary/0/geometric_mean", "summary/1/geometric_mean"
        ),
    ),
    Passage(
        "memory after ten walks | {:.1f} to {:.1f} s; {:.1f} s; {:.0f} ms; {:.2f} s; {:.2f} GB |",
        "dashboard.json",
        lambda found: [*warm_pages(found), *at(*DASHBOARD)(found)],
    ),
    Passage("other tools need at most {:.1f} GB of memory", "peers.json", at("peak_memory_gb")),
    Passage("the server of the web pages {:.2f} GB", "dashboard.json", at("server_memory_gb/peak")),
    Passage(
        "database server {:.2f} GB (100,000 jobs)",
        "ingest_jobs.json",
        at("steps/ingest_first/server_peak_memory_gb"),
    ),
    Passage(
        "as printed | {} of {}, {:.0%}; {} of {}, {:.0%}; {} of {}, {:.0%}; {} of {}, {:.0%} |",
        "simulation/2004-equal-time.json",
        networks_2004,
    ),
    Passage(
        "packet by packet; flit by flit | {:.1f} s; {:.1f} s |",
        "simulation/speed.json",
        lambda found: [row(found, f"CG's trace by {name}: time") for name in ("packets", "flits")],
    ),
    Passage(
        "(simulation-evidence.md#which-metric-to-trust)) | {:.2f}; {:.2f}; {:.2f}; {:.2f} |",
        "simulation/correlation.json",
        predictors("all cases"),
    ),
    Passage(
        "faster half of the placements | {:.2f}; {:.2f}; {:.2f}; {:.2f} |",
        "simulation/correlation.json",
        predictors("the faster half of every case"),
    ),
    Passage(
        "that links limit, {} applications each",
        circuits.EQUAL_TIME,
        lambda found: [circuits.applications(found)[0]],
    ),
    Passage(
        "with the highest first, as its text means it | {:.2f} to {:.2f}; {:.2f} to {:.2f} times |",
        circuits.EQUAL_TIME,
        lambda found: circuits.limited(found, circuits.SETS[1]),
    ),
    Passage(
        "that loop, lowest first; highest first | {:.0f} s; {:.0f} s |",
        circuits.SPEED,
        lambda found: circuits.times(found)[:2],
    ),
)
