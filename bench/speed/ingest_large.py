"""Measure time and peak memory of ingesting a three-level fat tree of 20,000 hosts and its forwarding tables.

Run ``python -m bench.speed.ingest_large`` in the project's folder. The scan and the dump of the tables (about
four gigabytes) are made in a temporary folder and deleted afterwards. Every step runs in its own process; the
start of the embedded server is not part of any step. Writes ``bench/results/ingest_large.json``.

``python -m bench.speed.ingest_large 4`` is a trial with 4 pods: it prints, and writes no record.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.support.machine import save
from bench.support.paths import RESULTS
from bench.support.separate_process import measure_step
from ingest.formats.fabrics.infiniband import Device
from ingest.options import Options
from ingest.pipeline import ingest, plan
from ingest.writers import forwarding_tables, ibnetdiscover_text, opensm_lfts_blocks, three_level_tree
from registry.database.embedded_server import ensure_server, stop
from registry.progress import silent
from registry.registry import Registry

RECORD = RESULTS / "ingest_large.json"
CLUSTER = "large"
PODS = 50
REWIRED = 30
"""Hosts' cables that the changed scan shows on another leaf."""
SCAN, CHANGED, DUMP = "ibnetdiscover.txt", "changed.txt", "opensm-lfts.dump"
ROOM = 7e9
"""Bytes of the temporary folder that the files, and the database, may take."""
LATER, LAST = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)


def main(pods: int = PODS) -> None:
    """Make the files, run every step and record the results."""
    with tempfile.TemporaryDirectory() as folder:
        if shutil.disk_usage(folder).free < ROOM * pods / PODS:
            raise SystemExit(f"{folder} has no {ROOM * pods / PODS / 1e9:.0f} GB free: set TMPDIR")
        home, files = Path(folder) / "home", Path(folder) / "files"
        files.mkdir()
        sizes = make(files, pods)
        ensure_server(home, idle_seconds=600.0, progress=silent)
        try:
            steps = {step.__name__: measure_step(step, files, home) for step in STEPS}
        finally:
            stop(home)
    save(RECORD if pods == PODS else None, sizes, steps)


def make(files: Path, pods: int) -> dict[str, int]:
    """Write the scan, one with some cables moved, and the dump of the tables; return their sizes."""
    devices = three_level_tree(pods)
    tables = forwarding_tables(devices)
    (files / SCAN).write_text(ibnetdiscover_text(devices))
    with (files / DUMP).open("w") as out:
        out.writelines(opensm_lfts_blocks(devices, tables))
    rewire(devices)
    (files / CHANGED).write_text(ibnetdiscover_text(devices))
    return {
        "hosts": sum(device.kind == "H" for device in devices),
        "switches": len(tables.switch_guid),
        "cables": sum(len(device.ports) for device in devices) // 2,
        "rewired_cables": REWIRED,
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


def parse(files: Path, home: Path) -> float:
    """Read, recognise, parse and check the scan; no database."""
    start = time.perf_counter()
    plan([files / SCAN], Options(cluster=CLUSTER))
    return time.perf_counter() - start


def save_first(files: Path, home: Path) -> float:
    """Save the parsed scan for the first time."""
    return _save(files / SCAN, None, home, new=True)


def save_unchanged(files: Path, home: Path) -> float:
    """Save the same wiring as observed a day later, already parsed."""
    return _save(files / SCAN, LATER, home, new=False)


def save_changed(files: Path, home: Path) -> float:
    """Save the changed scan, already parsed."""
    return _save(files / CHANGED, LAST, home, new=True)


def ingest_changed_back(files: Path, home: Path) -> float:
    """Ingest the first wiring again, observed later still: as many links differ, the other way."""
    return _bring_in(
        files / SCAN, Options(cluster=CLUSTER, observed_at=datetime(2026, 1, 4, tzinfo=UTC)), home
    )


def ingest_same_bytes(files: Path, home: Path) -> float:
    """Ingest the very same file once more."""
    return ingest_changed_back(files, home)


def parse_tables(files: Path, home: Path) -> float:
    """Read and check the dump of the tables; no database."""
    start = time.perf_counter()
    plan([files / DUMP], Options(cluster=CLUSTER))
    return time.perf_counter() - start


def ingest_tables(files: Path, home: Path) -> float:
    """Ingest the dump of the tables."""
    return _bring_in(files / DUMP, Options(cluster=CLUSTER), home)


def ingest_tables_same_bytes(files: Path, home: Path) -> float:
    """Ingest the very same dump once more."""
    return ingest_tables(files, home)


def read_back(files: Path, home: Path) -> float:
    """Read the fabric with its tables from the graph, over an open connection."""
    with Registry.open(home=home) as registry:
        start = time.perf_counter()
        fabric = registry.fabrics.read(CLUSTER).fabric
        seconds = time.perf_counter() - start
    if fabric.tables is None or len(fabric.tables.switch_guid) != len(fabric.switches):
        raise SystemExit("what came back is not what went in")
    return seconds


def _save(scan: Path, seen: datetime | None, home: Path, *, new: bool) -> float:
    intake = plan([scan], Options(cluster=CLUSTER, observed_at=seen))
    with Registry.open(home=home) as registry:
        start = time.perf_counter()
        receipt = registry.save(intake)
        seconds = time.perf_counter() - start
    if receipt.new_content != new or not receipt.new_observation:
        raise SystemExit(f"not what was expected: {receipt}")
    return seconds


def _bring_in(path: Path, options: Options, home: Path) -> float:
    start = time.perf_counter()
    with Registry.open(home=home) as registry:
        ingest(registry, [path], options)
    return time.perf_counter() - start


STEPS = (
    parse,
    save_first,
    save_unchanged,
    save_changed,
    ingest_changed_back,
    ingest_same_bytes,
    parse_tables,
    ingest_tables,
    ingest_tables_same_bytes,
    read_back,
)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
