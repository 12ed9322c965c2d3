"""Measure time and peak memory of ingesting a profile of a million edges, and of reading it back.

Run ``python -m bench.speed.ingest_profile`` in the project's folder. Every step runs in its own process; the
start of the embedded server is not part of any step. Writes ``bench/results/ingest_profile.json``.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bench.support.machine import save
from bench.support.paths import RESULTS
from bench.support.separate_process import measure_step
from ingest.formats.profiles.edges import csv_text
from ingest.generate.collectives import random
from ingest.options import Options
from ingest.pipeline import ingest, plan
from registry.database.embedded_server import ensure_server, stop
from registry.progress import silent
from registry.registry import Registry

RECORD = RESULTS / "ingest_profile.json"
NAME = "million"
RANKS, PARTNERS = 20_000, 50


def main() -> None:
    """Make the file, run every step and record the results."""
    with tempfile.TemporaryDirectory() as folder:
        home, files = Path(folder) / "home", Path(folder) / "files"
        files.mkdir()
        profile = random(RANKS, partners=PARTNERS, bytes=1e6)
        (files / "edges.csv").write_text(csv_text(profile))
        sizes = {
            "ranks": profile.ranks,
            "edges": profile.pairs,
            "file_bytes": (files / "edges.csv").stat().st_size,
        }
        ensure_server(home, idle_seconds=600.0, progress=silent)
        try:
            steps = {
                "parse": measure_step(parse, files, home),
                "ingest": measure_step(bring_in, files, home),
                "read_back": measure_step(read_back, files, home),
            }
        finally:
            stop(home)
    save(RECORD, sizes, steps)


def parse(files: Path, home: Path) -> float:
    """Read, recognise, parse and check; no database."""
    start = time.perf_counter()
    plan([files], Options(name=NAME))
    return time.perf_counter() - start


def bring_in(files: Path, home: Path) -> float:
    """Run the whole ingest, including the connection."""
    start = time.perf_counter()
    with Registry.open(home=home) as registry:
        ingest(registry, [files], Options(name=NAME))
    return time.perf_counter() - start


def read_back(files: Path, home: Path) -> float:
    """Read the profile from the graph, over an open connection."""
    with Registry.open(home=home) as registry:
        start = time.perf_counter()
        stored = registry.profiles.read(NAME)
        seconds = time.perf_counter() - start
    if stored.profile.pairs != RANKS * PARTNERS:
        raise SystemExit("what came back is not what went in")
    return seconds


if __name__ == "__main__":
    main()
