"""Measure time and peak memory of ingesting 100,000 jobs of ``sacct --json``.

Run ``python -m bench.speed.ingest_jobs`` in the project's folder. The jobs are records printed by a real
Slurm, with their steps, under new numbers and on the hosts of a three-level fat tree of 20,000: six of ten on
one host, the others on up to 64, few on many. Writes ``bench/results/ingest_jobs.json``.

``python -m bench.speed.ingest_jobs 10000`` is a trial with fewer jobs: it prints, and writes no record.
"""

from __future__ import annotations

import copy
import gzip
import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bench.support.machine import save
from bench.support.paths import DATA, RESULTS
from bench.support.separate_process import measure_step
from ingest.generate.trees import three_level
from ingest.options import Options
from ingest.pipeline import ingest, plan
from registry.database.embedded_server import ensure_server, stop
from registry.model.intake import Intake
from registry.progress import silent
from registry.registry import Registry

RECORD = RESULTS / "ingest_jobs.json"
SAMPLE = DATA / "slurm" / "sacct.json.gz"
CLUSTER = "large"
JOBS = 100_000
HOSTS = 20_000


def main(jobs: int = JOBS) -> None:
    """Make the file, run every step and record the results."""
    with tempfile.TemporaryDirectory() as folder:
        home, files = Path(folder) / "home", Path(folder) / "files"
        files.mkdir()
        make(files / "sacct.json", jobs)
        ensure_server(home, idle_seconds=600.0, progress=silent)
        try:
            measure_step(fabric, files, home)
            steps = {
                "parse": measure_step(parse, files, home),
                "ingest_first": measure_step(bring_in, files, home),
                "ingest_same_bytes": measure_step(bring_in, files, home),
            }
        finally:
            stop(home)
        sizes = {"jobs": jobs, "hosts": HOSTS, "file_bytes": (files / "sacct.json").stat().st_size}
    save(RECORD if jobs == JOBS else None, sizes, steps)


def make(path: Path, jobs: int) -> None:
    """Write the file in one line, as ``sacct --json=v0.0.38 | jq -c`` would."""
    texts = [json.dumps(record, separators=(",", ":")) for record in _records()]
    generator = np.random.default_rng(0)
    with path.open("w") as out:
        out.write('{"meta":{"Slurm":{"release":"22.05.8"}},"errors":[],"jobs":[')
        for index in range(jobs):
            count = 1 if generator.random() < 0.6 else int(2 ** generator.uniform(0.0, 6.0))
            first = int(generator.integers(0, HOSTS - count))
            nodes = f"node[{first:05d}-{first + count - 1:05d}]"
            text = texts[index % len(texts)].replace('"@job"', str(1000 + index)).replace("@nodes", nodes)
            out.write(("," if index else "") + text)
        out.write("]}\n")


def _records() -> list[dict[str, Any]]:
    """Return the sample's jobs that ran, with placeholders for number and hosts."""
    found = []
    for record in json.loads(gzip.decompress(SAMPLE.read_bytes()))["jobs"]:
        if not record["nodes"].startswith("node"):
            continue
        one = copy.deepcopy(record)
        one["array"].update(job_id=0, task_id=None, task=None)
        one["het"].update(job_id=0)
        found.append(one | {"job_id": "@job", "nodes": "@nodes"})
    return found


def fabric(files: Path, home: Path) -> float:
    """Save the machine that the jobs ran on."""
    start = time.perf_counter()
    with Registry.open(home=home) as registry:
        seen = datetime(2026, 1, 1, tzinfo=UTC)
        registry.save(Intake(cluster=CLUSTER, observed_at=seen, fabric=three_level(), source="generated"))
    return time.perf_counter() - start


def parse(files: Path, home: Path) -> float:
    """Read, recognise, parse and check; no database."""
    start = time.perf_counter()
    plan([files], Options(cluster=CLUSTER))
    return time.perf_counter() - start


def bring_in(files: Path, home: Path) -> float:
    """Run the whole ingest, including the connection."""
    start = time.perf_counter()
    with Registry.open(home=home) as registry:
        ingest(registry, [files], Options(cluster=CLUSTER))
    return time.perf_counter() - start


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
