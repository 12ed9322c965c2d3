"""Read from the records what the page of the paper shows: see `bench.documented.ajwani_2013`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scipy.stats import spearmanr

from bench.documented.passage import Record, record
from bench.papers.circuits import equal_time
from bench.papers.circuits.experiment import geometric_mean
from bench.papers.circuits.rings import LETTERS, WELL
from bench.papers.circuits.trial import RINGS

CALIBRATION, EQUAL_TIME, OPTIMUM, PLANE, SEEDS, SPEED, CALIBRATED, DEFAULTS = (
    f"reconfigure/{name}.json"
    for name in (
        "calibration",
        "equal-time",
        "optimum",
        "plane",
        "table-3",
        "speed",
        "tables-1-2",
        "tables-1-2-defaults",
    )
)
SPEEDS = (100.0, 1000.0)
"""Compute speeds of the record of Table 3 and Figures 8 and 9, in the order of the page's cells."""
LOOP, ONE_STEP, HIGHEST, OURS = "paper's loop, all", "paper's loop, 1", "the same", "best of ours"
THROUGHPUT, SECONDS = 6, 9
SETS = (equal_time.CALIBRATED, equal_time.DEFAULTS)


def both(found: Record, *, number: int, row: int, columns: Sequence[str]) -> list[float]:
    """Return columns of a row with calibrated, then with default parameters."""
    return [
        one[name]
        for of in (found, record(DEFAULTS))
        for one in rows_of(of)
        if (one["table"], one["row"]) == (number, row)
        for name in columns
    ]


def rows_of(found: Record, number: int | None = None) -> list[dict[str, Any]]:
    """Return the rows of Table 1, of Table 2, or of both."""
    return [one for one in found["data"]["rows"] if number in (None, one["table"])]


def trend(rows: Sequence[dict[str, Any]]) -> float:
    """Return the rank correlation of the share bound by computation and the improvement (Figure 6(a))."""
    return float(spearmanr(*([one[name] for one in rows] for name in ("compute_bound", "improvement")))[0])


def seed_gains(found: Record, *, seed: str, size: int) -> list[float]:
    """Return gains of a seed topology in throughput and time, each with half of its interval."""
    return [
        value
        for speed in SPEEDS
        for name in ("throughput", "seconds")
        for value in scenario(found, 26, 200.0, size, speed)["seeds"][seed][name]
    ]


def scenario(found: Record, links: int, link_speed: float, vertices: int, speed: float) -> dict[str, Any]:
    """Return a scenario of Table 3 or of Figures 8 and 9."""
    wanted = (links, link_speed, vertices, speed)
    names = ("max_edges", "link_speed", "vertices", "compute_speed")
    (one,) = (one for one in found["data"]["scenarios"] if tuple(one[name] for name in names) == wanted)
    return one  # type: ignore[no-any-return]


def part(found: Record, letter: str, what: str, seeds: Sequence[str] = RINGS) -> list[list[float]]:
    """Return mean gains of seed topologies in a part of Figures 8 and 9, for each compute speed."""
    ((links, link_speed),) = (key for key, name in LETTERS.items() if name == letter)
    return [
        [scenario(found, links, link_speed, 300, speed)["seeds"][seed][what][0] for seed in seeds]
        for speed in SPEEDS
    ]


def well(found: Record, *, letter: str) -> list[int]:
    """Return the well-performing rings in a part of Figure 8 for each compute speed, and all rings."""
    return [*(sum(gain >= WELL for gain in of) for of in part(found, letter, "throughput")), len(RINGS)]


def time_saved(found: Record, *, letter: str) -> list[float]:
    """Return least and most time saved from rings, and that from the torus, for each compute speed."""
    rings, torus = part(found, letter, "seconds"), part(found, letter, "seconds", ("torus",))
    return [value for of, (one,) in zip(rings, torus, strict=True) for value in (min(of), max(of), one)]


def noise(found: Record, column: int) -> float:
    """Return the largest difference of C(16; 3) and C(16; 5), the same graph, over all scenarios."""
    rows = next(one["rows"] for one in found["tables"] if one["title"].startswith("The noise floor"))
    return max(abs(float(row[column].split(" ")[0])) for row in rows)


def large(found: Record, method: str, column: int, vertices: int = 10_000) -> float:
    """Return a column of a method of the record of times, for the compute speed of 1,000."""
    (row,) = (
        row
        for row in found["tables"][0]["rows"]
        if row[1] == vertices and row[2] == SPEEDS[1] and row[4].startswith(method)
    )
    return row[column]  # type: ignore[no-any-return]


def times(found: Record) -> list[float]:
    """Return seconds of the loop as printed, with the highest first, and with one step; its throughput."""
    seconds = [large(found, method, SECONDS) for method in (LOOP, HIGHEST, ONE_STEP)]
    return [*seconds, large(found, ONE_STEP, THROUGHPUT) / large(found, OURS, THROUGHPUT)]


def bounds(found: Record) -> list[float]:
    """Return ranges over rows of ours over the certified bound and of that over the balance, and losses.

    Losses are the trials in which ours is below one run of the loop as printed, and all trials.
    """
    rows = [one["pairs"] for of in (found, record(DEFAULTS)) for one in of["data"]["rows"]]
    rows += [one["pairs"] for one in record(SEEDS)["data"]["scenarios"]]
    ratios = [
        [geometric_mean(pair[one] / pair[other] for pair in pairs) for pairs in rows]
        for one, other in (("ours", "bound"), ("bound", "loose"))
    ]
    lost = [pair["ours"] < pair["paper"] for pairs in rows for pair in pairs]
    return [*(limit(of) for of in ratios for limit in (min, max)), sum(lost), len(lost)]


def imprecise(found: Record) -> list[float]:
    """Return how many rows ended on time, of how many, that time, and the range of their imprecision."""
    late = [one["throughput_imprecision"] for one in rows_of(found) if not one["complete"]]
    return [len(late), len(rows_of(found)), found["effort"]["seconds"], min(late), max(late)]


def least_loss(found: Record, which: int, points: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return the point of least loss of Table 1 (0), of Table 2 (1) or of both (2)."""
    of: Sequence[dict[str, Any]] = points or found["data"]["points"]
    return min(of, key=lambda one: one["losses"][which])


def smallest(found: Record) -> list[object]:
    """Return the smallest mean of both losses, these losses, and where it is."""
    one = least_loss(found, 2)
    names = ("expansion", "steps", "edge_weight", "vertex_spread")
    return [
        one["losses"][2],
        *one["losses"][:2],
        *("all" if one[name] is None else one[name] for name in names),
    ]


def least_points(found: Record, *, expansion: str, steps: int | None) -> list[float]:
    """Return where a reading's loss of Table 1, of Table 2 and of both is least, each with the loss."""
    points = [
        one for one in found["data"]["points"] if (one["expansion"], one["steps"]) == (expansion, steps)
    ]
    first, second, both = (least_loss(found, which, points) for which in range(3))
    at = [[one["edge_weight"], one["vertex_spread"]] for one in (first, second, both)]
    return [*at[0], first["losses"][0], *at[1], second["losses"][1], *at[2], *both["losses"][:2]]


def of_set(found: Record, name: str) -> dict[str, Any]:
    """Return the rows of a set of parameters in the record of equal time."""
    return found["data"]["sets"][name]["rows"]  # type: ignore[no-any-return]


def applications(found: Record) -> list[int]:
    """Return the applications of rows that links limit and of others, not calibrated, then calibrated."""
    return [len(of_set(found, name)[row]["trials"]) for name in SETS[::-1] for row in ("2.8", "2.1")]


def limited(found: Record, name: str) -> list[float]:
    """Return least and largest ratio at equal time over rows 8 to 12 of Table 2, for each reading."""
    rows = [of_set(found, name)[row]["equal"] for row in equal_time.LIMITED]
    return [bound(one[reading] for one in rows) for reading in rows[0] for bound in (min, max)]


def wins(found: Record, name: str) -> list[int]:
    """Return on how many applications of these rows ours is better than the stronger loop, worse, and all."""
    rows = [of_set(found, name)[row] for row in equal_time.LIMITED]
    return [
        *(sum(one[key] for one in rows) for key in ("better", "worse")),
        sum(len(one["trials"]) for one in rows),
    ]


def equal_row(found: Record, *, row: str) -> list[float]:
    """Return ratios, better / equal / worse applications and seconds; not calibrated, then calibrated."""
    values: list[float] = []
    for name in SETS[::-1]:
        one = of_set(found, name)[row]
        same = len(one["trials"]) - one["better"] - one["worse"]
        values += [*one["equal"].values(), one["better"], same, one["worse"], one["seconds"]]
    return values


def ranges(found: Record, *, columns: Sequence[str], number: int, first: int) -> list[float]:
    """Return the range of columns over rows of a table from a row on, calibrated / not calibrated."""
    return [
        bound(one[name] for one in rows_of(of, number) if one["row"] >= first)
        for of in (found, record(DEFAULTS))
        for name in columns
        for bound in (min, max)
    ]


def iterations(found: Record, *, column: int) -> list[float]:
    """Return the range over rows of the shares of Figure 6(b), calibrated / not calibrated."""
    return [
        bound(row[column + 1] for row in of["tables"][-1]["rows"])
        for of in (found, record(DEFAULTS))
        for bound in (min, max)
    ]
