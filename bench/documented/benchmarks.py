"""Figures in docs/explanation/benchmarks.md."""

from __future__ import annotations

from collections.abc import Callable

from bench.documented.passage import Passage, Record, at

PAGE = "docs/explanation/benchmarks.md"
PLACED = "curves/placement on {}/points/100000/{}"


def means(metric: str, *limits: float, name: str = "geometric_mean") -> Callable[[Record], list[float]]:
    """Return a function that reads a value of a metric over all instances, at limits in seconds."""
    return lambda found: [
        one[name]
        for limit in limits
        for one in found["summary"]
        if (one["metric"], one["seconds"]) == (metric, limit)
    ]


def beside_targets(found: Record, metric: str, *limits: float) -> list[float]:
    """Return the mean of a metric at each limit in seconds, and after it what is aimed for."""
    names = ("geometric_mean", "target")
    return [means(metric, limit, name=name)(found)[0] for limit in limits for name in names]


def limits_met(found: Record) -> list[int]:
    """Return the number of limits of costs that are met, and of all."""
    met = [
        curve["points"][size]["seconds"] <= limit
        for curve in found["curves"].values()
        for size, limit in curve["limits_seconds"].items()
    ]
    return [sum(met), len(met)]


PASSAGES = (
    Passage(
        "Hop-bytes are {:.3f} at 1 s ({:.2f}) and {:.3f} at 30 s ({:.2f}) of the best of all peers",
        "peers.json",
        lambda found: beside_targets(found, "hop_bytes", 1.0, 30.0),
    ),
    Passage(
        "above it in {} and {} of {} instances",
        "peers.json",
        lambda found: [
            *means("hop_bytes", 1.0, 30.0, name="above_1")(found),
            *means("hop_bytes", 30.0, name="instances")(found),
        ],
    ),
    Passage(
        "worst link is {:.3f} at 1 s ({:.2f}) and {:.3f} at 30 s ({:.2f})",
        "peers.json",
        lambda found: beside_targets(found, "congestion_seconds", 1.0, 30.0),
    ),
    Passage(
        "network congestion {:.3f} at 30 s ({:.2f})",
        "peers.json",
        lambda found: beside_targets(found, "network_congestion_seconds", 30.0),
    ),
    Passage("{} of {} limits are met", "scale.json", limits_met),
    Passage(
        "{:.2f} s for exact congestion of 1,728 ranks on a torus is above {:.1f} s",
        "scale.json",
        at(
            "curves/exact congestion, torus/points/1728/seconds",
            "curves/exact congestion, torus/limits_seconds/1728",
        ),
    ),
    Passage(
        "hosts in {:.0f} s and {:.1f} GB, hop-bytes {:.0%} below in order; {:.1f} GB if the worst link",
        "scale.json",
        at(
            PLACED.format("hop-bytes", "seconds"),
            PLACED.format("hop-bytes", "peak_memory_gb"),
            PLACED.format("hop-bytes", "hop_bytes_change / -1"),
            PLACED.format("congestion", "peak_memory_gb"),
        ),
    ),
    Passage(
        "in {:.0f} s are as good as one in {:.0f} s: geometric means {:.3f} on hop-bytes and {:.3f}",
        "cores.json",
        at(
            "seconds/two",
            "seconds/one",
            "geometric_mean_of_two_over_one/hop-bytes",
            "geometric_mean_of_two_over_one/congestion",
        ),
    ),
    Passage(
        "at worst {:.2f} ([cores.md]",
        "cores.json",
        lambda found: [
            max(one["two"] / one["one"] for each in found["instances"].values() for one in each.values())
        ],
    ),
)
