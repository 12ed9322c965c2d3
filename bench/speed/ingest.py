"""Measure time and peak memory of ingests: a director-class fabric, a large one, jobs, a large profile.

Run ``python -m bench.speed.ingest [NAME]...`` in the project's folder (default: all). Files are made in a
temporary folder; for the large fabric they take four gigabytes. Every step runs in its own process, so that
its peak memory is measured alone; the start of the embedded server is not part of any step. Writes
``bench/results/ingest*.json``; with ``--size N`` (pods of a large fabric, jobs) it only prints.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.support.machine import measure_step, save
from bench.support.paths import DATA, RESULTS
from ingest.formats.fabrics.infiniband import Device
from ingest.formats.profiles.edges import csv_text
from ingest.generate.collectives import random
from ingest.generate.trees import three_level
from ingest.options import Options
from ingest.pipeline import ingest, plan
from ingest.writers import (
    director_tree,
    forwarding_tables,
    ibnetdiscover_text,
    opensm_lfts_blocks,
    three_level_tree,
)
from registry.database.embedded_server import ensure_server, stop
from registry.model.intake import Intake
from registry.progress import silent
from registry.registry import Registry

Step = Callable[[Path, Path], float]
"""Takes the folders of the files and of the database, and returns seconds."""
CLUSTER = "large"
SCAN, CHANGED, DUMP, JOBS, EDGES = "scan.txt", "changed.txt", "tables.dump", "sacct.json", "edges.csv"
REWIRED = 30
"""Hosts' cables that the changed scan shows on another leaf."""
SAMPLE = DATA / "slurm" / "sacct.json.gz"
"""Records printed by a real Slurm, with their steps, that the jobs are made of."""
JOB_HOSTS = 20_000
PARTNERS = 50
"""Of each rank of the profile."""
ROOM = 1.4e8
"""Bytes that the files and the database of a pod may take."""


class Benchmark(NamedTuple):
    """Files of a size, which are measured by steps in their order; `before` is not recorded."""

    record: str
    make: Callable[[Path, int], dict[str, int]]
    size: int
    steps: dict[str, Step]
    before: Step | None = None


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the files, run every step and record the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed.ingest", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--size", type=int, help="smaller, as a trial that is not recorded")
    options = parser.parse_args(arguments)
    for name in options.names or BENCHMARKS:
        measure(BENCHMARKS[name], options.size)


def measure(what: Benchmark, size: int | None = None) -> None:
    """Run the steps of a benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        home, files = Path(folder) / "home", Path(folder) / "files"
        files.mkdir()
        sizes = what.make(files, size or what.size)
        ensure_server(home, idle_seconds=600.0, progress=silent)
        try:
            if what.before:
                measure_step(what.before, files, home)
            steps = {name: measure_step(step, files, home) for name, step in what.steps.items()}
        finally:
            stop(home)
    save(None if size else RESULTS / what.record, sizes, steps)


def make_director(files: Path, _: int) -> dict[str, int]:
    """Write the scan and the dump of 2,304 hosts on four 648-port directors."""
    return _write_fabric(files, director_tree())


def make_large(files: Path, pods: int) -> dict[str, int]:
    """Write those of a three-level fat tree, 20,000 hosts in 50 pods, and a scan with some cables moved."""
    if shutil.disk_usage(files).free < ROOM * pods:
        raise SystemExit(f"{files} has no {ROOM * pods / 1e9:.0f} GB free: set TMPDIR")
    devices = three_level_tree(pods)
    sizes = _write_fabric(files, devices)
    rewire(devices)
    (files / CHANGED).write_text(ibnetdiscover_text(devices))
    return sizes | {"rewired_cables": REWIRED}


def _write_fabric(files: Path, devices: list[Device]) -> dict[str, int]:
    tables = forwarding_tables(devices)
    (files / SCAN).write_text(ibnetdiscover_text(devices))
    with (files / DUMP).open("w") as out:
        out.writelines(opensm_lfts_blocks(devices, tables))
    return {
        "hosts": sum(device.kind == "H" for device in devices),
        "switches": len(tables.switch_guid),
        "cables": sum(len(device.ports) for device in devices) // 2,
        "table_entries": int((tables.ports != 255).sum()),
        "scan_bytes": (files / SCAN).stat().st_size,
        "dump_bytes": (files / DUMP).stat().st_size,
    }


def rewire(devices: list[Device]) -> None:
    """Exchange the cables of hosts in pairs, so that each is on the other's leaf."""
    by_guid = {device.guid: device for device in devices}
    hosts = [device for device in devices if device.kind == "H"]
    for first in range(0, REWIRED, 2):
        ports = hosts[first * 20].ports[1], hosts[first * 20 + 20].ports[1]
        leaves = [by_guid[port.peer].ports[port.peer_port] for port in ports]
        for one, other in (ports, leaves):
            one.peer, other.peer = other.peer, one.peer
            one.peer_port, other.peer_port = other.peer_port, one.peer_port


def make_jobs(files: Path, jobs: int) -> dict[str, int]:
    """Write jobs in one line, as ``sacct --json | jq -c`` would: six of ten on one host, few on many."""
    texts = [json.dumps(record, separators=(",", ":")) for record in _job_records()]
    generator = np.random.default_rng(0)
    with (files / JOBS).open("w") as out:
        out.write('{"meta":{"Slurm":{"release":"22.05.8"}},"errors":[],"jobs":[')
        for index in range(jobs):
            count = 1 if generator.random() < 0.6 else int(2 ** generator.uniform(0.0, 6.0))
            first = int(generator.integers(0, JOB_HOSTS - count))
            nodes = f"node[{first:05d}-{first + count - 1:05d}]"
            text = texts[index % len(texts)].replace('"@job"', str(1000 + index)).replace("@nodes", nodes)
            out.write(("," if index else "") + text)
        out.write("]}\n")
    return {"jobs": jobs, "hosts": JOB_HOSTS, "file_bytes": (files / JOBS).stat().st_size}


def _job_records() -> list[dict[str, Any]]:
    """Return the sample's jobs that ran, with placeholders for number and hosts."""
    records = []
    for sample in json.loads(gzip.decompress(SAMPLE.read_bytes()))["jobs"]:
        if sample["nodes"].startswith("node"):
            record = copy.deepcopy(sample)
            record["array"].update(job_id=0, task_id=None, task=None)
            record["het"].update(job_id=0)
            records.append(record | {"job_id": "@job", "nodes": "@nodes"})
    return records


def make_profile(files: Path, ranks: int) -> dict[str, int]:
    """Write a profile of a million edges."""
    profile = random(ranks, partners=PARTNERS, bytes=1e6)
    (files / EDGES).write_text(csv_text(profile))
    return {"ranks": ranks, "edges": profile.pairs, "file_bytes": (files / EDGES).stat().st_size}


def save_machine(files: Path, home: Path) -> float:
    """Save the machine that the jobs ran on."""
    start = time.perf_counter()
    with Registry.open(home=home) as registry:
        seen = datetime(2026, 1, 1, tzinfo=UTC)
        registry.save(Intake(cluster=CLUSTER, observed_at=seen, fabric=three_level(), source="generated"))
    return time.perf_counter() - start


def parse(names: Sequence[str], options: Options, files: Path, home: Path) -> float:
    """Read, recognise, parse and check; no database."""
    start = time.perf_counter()
    plan([files / name for name in names], options)
    return time.perf_counter() - start


def bring_in(names: Sequence[str], options: Options, files: Path, home: Path) -> float:
    """Run the whole ingest, including the connection."""
    start = time.perf_counter()
    with Registry.open(home=home) as registry:
        ingest(registry, [files / name for name in names], options)
    return time.perf_counter() - start


def save_parsed(name: str, options: Options, new: bool, files: Path, home: Path) -> float:
    """Save a scan that is parsed already; `new`: its wiring is another one than the last."""
    intake = plan([files / name], options)
    with Registry.open(home=home) as registry:
        start = time.perf_counter()
        receipt = registry.save(intake)
        seconds = time.perf_counter() - start
    if receipt.new_content != new or not receipt.new_observation:
        raise SystemExit(f"not what was expected: {receipt}")
    return seconds


def read_fabric(files: Path, home: Path) -> float:
    """Read the fabric with its tables from the graph, over an open connection."""
    with Registry.open(home=home) as registry:
        start = time.perf_counter()
        fabric = registry.fabrics.read(CLUSTER).fabric
        seconds = time.perf_counter() - start
    if fabric.tables is None or len(fabric.tables.switch_guid) != len(fabric.switches):
        raise SystemExit("what came back is not what went in")
    return seconds


def read_profile(files: Path, home: Path) -> float:
    """Read the profile from the graph, over an open connection."""
    with Registry.open(home=home) as registry:
        start = time.perf_counter()
        stored = registry.profiles.read("million")
        seconds = time.perf_counter() - start
    if stored.profile.pairs != stored.profile.ranks * PARTNERS:
        raise SystemExit("what came back is not what went in")
    return seconds


def _seen(day: int | None = None) -> Options:
    return Options(cluster=CLUSTER, observed_at=None if day is None else datetime(2026, 1, day, tzinfo=UTC))


def _three(name: Sequence[str], options: Options, again: str) -> dict[str, Step]:
    """Return the steps of parsing, ingesting, and ingesting once more."""
    bring = partial(bring_in, name, options)
    return {"parse": partial(parse, name, options), "ingest_first": bring, again: bring}


MILLION = Options(name="million")
BENCHMARKS = {
    "director": Benchmark(
        "ingest.json",
        make_director,
        1,
        {**_three((SCAN, DUMP), _seen(), "ingest_unchanged"), "read_back": read_fabric},
    ),
    "profile": Benchmark(
        "ingest_profile.json",
        make_profile,
        20_000,
        {
            "parse": partial(parse, (EDGES,), MILLION),
            "ingest": partial(bring_in, (EDGES,), MILLION),
            "read_back": read_profile,
        },
    ),
    "jobs": Benchmark(
        "ingest_jobs.json", make_jobs, 100_000, _three((JOBS,), _seen(), "ingest_same_bytes"), save_machine
    ),
    "large": Benchmark(
        "ingest_large.json",
        make_large,
        50,
        {
            "parse": partial(parse, (SCAN,), _seen()),
            "save_first": partial(save_parsed, SCAN, _seen(), True),
            "save_unchanged": partial(save_parsed, SCAN, _seen(2), False),
            "save_changed": partial(save_parsed, CHANGED, _seen(3), True),
            "ingest_changed_back": partial(bring_in, (SCAN,), _seen(4)),
            "ingest_same_bytes": partial(bring_in, (SCAN,), _seen(4)),
            "parse_tables": partial(parse, (DUMP,), _seen()),
            "ingest_tables": partial(bring_in, (DUMP,), _seen()),
            "ingest_tables_same_bytes": partial(bring_in, (DUMP,), _seen()),
            "read_back": read_fabric,
        },
    ),
}

if __name__ == "__main__":
    main()
