"""Measure size, reads and ingests of a registry after 1, 6 and 12 months, with and without retention.

Run ``python -m bench.year`` in the project's folder; the machine should do nothing else meanwhile. The
history of a year is written twice into embedded servers in a temporary folder (``--home``: in this one, and
kept), without rules and with `RULES`, applied every night. Writes ``bench/results/year_hourly.json``.

``--small`` is a trial with 200 hosts and one month; it prints and writes no record, as do ``--months 1`` and
``--only without``. ``--output`` writes one nevertheless, after each measurement.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.support.machine import machine, now
from bench.support.paths import RESULTS
from bench.year.ingests import measure_ingests
from bench.year.reads import measure_reads
from bench.year.writing import History, Sizes
from registry.database.local.files import ServerFiles
from registry.database.local.server import ensure_server, stop
from registry.maintenance.retention import Rules, prune
from registry.maintenance.rules import Keep
from registry.progress import silent
from registry.registry import Registry

RECORD = RESULTS / "year_hourly.json"
START = datetime(2025, 1, 1, tzinfo=UTC)
DAYS = {1: 30, 6: 182, 12: 365}
"""Days of so many months."""
SMALL = Sizes(pods=2, leaves=10, jobs=50, advised=3)
WITHOUT, WITH = VARIANTS = ("without retention", "with retention")
RULES = {
    "observations": "daily after 30 days, weekly after 180 days",
    "counters": "daily after 30 days, none after 180 days",
    "placements": "none after 90 days",
    "runs": "none after 30 days",
}
"""Rules of the variant with retention; sweeps become hourly sums after 7 days in both."""
IDLE_SECONDS = 7200.0
LARGEST = 12
"""Kinds of data of which the size is recorded."""

Measured = dict[str, Any]


def main() -> None:
    """Write the histories, measure each after some months, and record the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="200 hosts and one month")
    parser.add_argument("--months", type=int, choices=DAYS, default=12)
    parser.add_argument("--only", choices=("without", "with"))
    parser.add_argument("--home", type=Path, help="folder for the databases, which stay there")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    sizes, months = (SMALL, 1) if given.small else (Sizes(), given.months)
    chosen = [name for name in VARIANTS if given.only in (None, name.split()[0])]
    whole = sizes == Sizes() and months == 12 and given.only is None
    record: Measured = {
        "date": now(),
        "machine": machine(),
        "sizes": asdict(sizes),
        "rules": RULES,
        "months": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            home = (given.home or Path(folder)) / name.split()[0]
            rules = None if name == WITHOUT else rules_of(RULES)
            for month, found in _measured(home, sizes, months, rules):
                record["months"].setdefault(str(month), {})[name] = found
                _save(given.output, record)
    _save(RECORD if whole else None, record)
    json.dump(record, sys.stdout, indent=1)


def rules_of(texts: dict[str, str]) -> Rules:
    """Return the rules of retention of these texts."""
    return Rules(**{kind: Keep.parse(text) for kind, text in texts.items()})


def stored_bytes(home: Path) -> dict[str, int]:
    """Return the bytes of a stopped server's files, of all together and of the largest kinds of data."""
    sizes: Counter[str] = Counter()
    for path in ServerFiles(home).data.rglob("*"):
        if path.is_file():
            sizes[path.name.partition("_")[0]] += path.stat().st_size
    return {"all": sum(sizes.values()), **dict(sizes.most_common(LARGEST))}


def _measured(home: Path, sizes: Sizes, months: int, rules: Rules | None) -> Iterator[tuple[int, Measured]]:
    """Write a history; yield after some months their number and what was measured."""
    history, days = None, 0
    try:
        for month in (one for one in DAYS if one <= months):
            with _opened(home) as registry:
                history = history or History.begin(registry, sizes, START)
                found: Measured = _written(history.on(registry), DAYS[month] - days, rules)
            stop(home)  # until then its log of transactions is part of the size
            found |= {"written": asdict(history.written), "stored_bytes": stored_bytes(home)}
            with _opened(home) as registry:
                found["reads"] = measure_reads(registry, history.time, sizes.seed)
                found["ingests"] = measure_ingests(history.on(registry))
            days = DAYS[month]
            yield month, found
    finally:
        stop(home)


def _written(history: History, days: int, rules: Rules | None) -> Measured:
    """Write days of a history, and prune after each; return the seconds of both."""
    begin, pruned = time.perf_counter(), 0.0
    for _ in range(days):
        history.write_day()
        if rules is not None:
            start = time.perf_counter()
            prune(history.registry.database, rules, history.time)
            pruned += time.perf_counter() - start
        seconds = time.perf_counter() - begin
        print(f"{seconds:8.0f} s  {history.time:%Y-%m-%d}", file=sys.stderr, flush=True)
    return {"seconds_to_write": round(seconds - pruned, 1), "seconds_to_prune": round(pruned, 1)}


@contextmanager
def _opened(home: Path) -> Iterator[Registry]:
    """Start the server of a folder and open its registry."""
    ensure_server(home, idle_seconds=IDLE_SECONDS, progress=silent)
    with Registry.open(home=home) as registry:
        yield registry


def _save(path: Path | None, record: Measured) -> None:
    if path is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
