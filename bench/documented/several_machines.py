"""Figures in docs/how-to/several-machines.md."""

from __future__ import annotations

from bench.documented.passage import Passage, Record

PAGE = "docs/how-to/several-machines.md"
RECORD = "several_machines.json"


def sizes(record: Record) -> list[object]:
    """Return size and time to pickle of the largest fabric, and size and time to send of its problem."""
    largest = record["sizes"][-1]
    return [
        largest["fabric_mb"],
        largest["fabric_pickle_seconds"] * 1e3,
        largest["problem_mb"],
        largest["share_seconds"],
    ]


def longer(record: Record) -> list[object]:
    """Return how much longer the smallest and the largest search take there, and the longest first search."""
    there = [one["there_seconds"] - one["here_seconds"] for one in record["sizes"]]
    return [there[0], there[-1], max(one["first_there_seconds"] for one in record["sizes"])]


PASSAGES = (
    Passage("(load average {:.0f})", RECORD, lambda found: [found["load_average"]]),
    Passage(
        "a fabric of 20,000 hosts is {:.1f} MB and is pickled in {:.0f} ms; with its routes and "
        "100,000 ranks it is {:.0f} MB, which were sent to three workers in {:.1f} s",
        RECORD,
        sizes,
    ),
    Passage(
        "takes {:.2f} s longer there than here with 100 ranks, and {:.1f} s longer with 100,000; the first "
        "one, for which workers load kernels, took up to {:.1f} s",
        RECORD,
        longer,
    ),
)
