"""Figures in docs/how-to/stored-data.md."""

from __future__ import annotations

from bench.documented.passage import Passage, Record, at

PAGE = "docs/how-to/stored-data.md"
RECORD, FAULTS = "year.json", "faults.json"
COLUMNS = (
    "months/1/without retention",
    "months/1/with retention",
    "months/6/without retention",
    "months/6/with retention",
    "months/12/without retention",
    "months/12/with retention",
)
"""Months and variants, as the columns of the table."""
READS = (
    "overview",
    "fabric now",
    "fabric a month ago",
    "subgraph of a job",
    "running jobs",
    "jobs",
    "job",
    "changes of a week",
    "ports of a day",
    "placements of a month",
)
INGESTS = ("scan", "sweep", "jobs of an hour")


def _row(heading: str, spec: str, path: str) -> Passage:
    """Return the passage of a row of the table with a value for each column."""
    text = f"| {heading} | " + " | ".join(f"{{:{spec}}}" for _ in COLUMNS) + " |"
    return Passage(text, RECORD, at(*(f"{column}/{path}" for column in COLUMNS)))


def _disturbed(heading: str, name: str) -> Passage:
    """Return the passage of a row of the table of faults."""
    return Passage(
        f"| {heading} | {{}} | {{}} |",
        FAULTS,
        lambda found: [found[name]["trials"], len(found[name]["faults"])],
    )


def _crowd(found: Record) -> list[object]:
    crowd = found["crowd"]
    return [crowd["seconds"], sum(crowd["commands"].values()), len(crowd["faults"]) + len(crowd["lost"])]


PASSAGES = (
    _disturbed("`kill -9` at a random moment, of the command or of the embedded server", "kills"),
    _disturbed("the disk runs full at a random moment", "full-disk"),
    _disturbed("Neo4j restarts", "restarts"),
    Passage(
        "| four writers and four readers at the same time for {} s | {} commands | {}, nothing lost |",
        FAULTS,
        _crowd,
    ),
    Passage(
        "| damaged files of {} formats for {:,} s | {:,} files | {} |",
        FAULTS,
        lambda found: [
            *(found["fuzz"][key] for key in ("formats", "seconds", "cases")),
            len(found["fuzz"]["faults"]),
        ],
    ),
    _row("files, GB", ".1f", "stored_bytes/all / 1e9"),
    Passage(
        "| files after `db compact`, GB | - | - | - | - | - | {:.1f} |",
        RECORD,
        at(*("months/12/with retention/compacted_bytes/all / 1e9",)),
    ),
    *(_row(f"{name}, ms", ".0f", f"reads/{name}/median_seconds / 1e-3") for name in READS),
    *(_row(f"ingest: {name}, ms", ".0f", f"ingests/{name}/median_seconds / 1e-3") for name in INGESTS),
)
