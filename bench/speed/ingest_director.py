"""Measure time and peak memory of ingesting a director-class fabric with its tables, and of reading it back.

Run ``python -m bench.speed.ingest_director`` in the project's folder. Every step runs in its own process, so
that its peak memory is measured alone; the start of the embedded server is not part of any step. Writes
``bench/results/ingest.json``.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bench.support.machine import save
from bench.support.paths import RESULTS
from bench.support.separate_process import measure_step
from ingest.options import Options
from ingest.pipeline import ingest, plan
from ingest.writers import director_tree, forwarding_tables, ibnetdiscover_text, opensm_lfts_text
from registry.database.embedded_server import ensure_server, stop
from registry.progress import silent
from registry.registry import Registry

RECORD = RESULTS / "ingest.json"
CLUSTER = "director"


def main() -> None:
    """Make the files, run every step and record the results."""
    with tempfile.TemporaryDirectory() as folder:
        home, files = Path(folder) / "home", Path(folder) / "files"
        files.mkdir()
        sizes = make(files)
        ensure_server(home, idle_seconds=600.0, progress=silent)
        try:
            steps = {
                "parse": measure_step(parse, files, home),
                "ingest_first": measure_step(bring_in, files, home),
                "ingest_unchanged": measure_step(bring_in, files, home),
                "read_back": measure_step(read_back, files, home),
            }
        finally:
            stop(home)
    save(RECORD, sizes, steps)


def make(files: Path) -> dict[str, int]:
    """Write the scan and the dump of 2,304 hosts on four 648-port directors; return their sizes."""
    devices = director_tree()
    tables = forwarding_tables(devices)
    (files / "ibnetdiscover.txt").write_text(ibnetdiscover_text(devices))
    (files / "opensm-lfts.dump").write_text(opensm_lfts_text(devices, tables))
    return {
        "hosts": sum(device.kind == "H" for device in devices),
        "switches": len(tables.switch_guid),
        "cables": sum(len(device.ports) for device in devices) // 2,
        "table_entries": int((tables.ports != 255).sum()),
        "scan_bytes": (files / "ibnetdiscover.txt").stat().st_size,
        "dump_bytes": (files / "opensm-lfts.dump").stat().st_size,
    }


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


def read_back(files: Path, home: Path) -> float:
    """Read the fabric with its tables from the graph, over an open connection."""
    with Registry.open(home=home) as registry:
        start = time.perf_counter()
        snapshot = registry.fabrics.read(CLUSTER)
        seconds = time.perf_counter() - start
    fabric = snapshot.fabric
    if len(fabric.hosts) != 2304 or fabric.tables is None:
        raise SystemExit("what came back is not what went in")
    return seconds


if __name__ == "__main__":
    main()
