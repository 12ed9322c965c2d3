"""Measure size, reads and ingests of a registry after 1, 6 and 12 months, with and without retention.

Run ``python -m bench.year`` in the project's folder; the machine should do nothing else meanwhile. The
history of a year is written twice into embedded servers, without rules and with `RULES`, applied every night;
with rules the files are compacted before each measurement of the reads.
That takes hours: with ``--home FOLDER`` the servers stay in this folder, and the next run goes on there.
Each measurement replaces its own in ``bench/results/year.json``.

``--small`` is a trial with 200 hosts and one month; it prints and writes no record.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.support.machine import machine, now, write_record
from bench.support.paths import RESULTS
from bench.year.history import History, Sizes
from bench.year.measures import measure_ingests, measure_reads
from registry.database.embedded_files import ServerFiles
from registry.database.embedded_server import ensure_server, stop
from registry.progress import silent
from registry.registry import Registry
from registry.upkeep.restore import compact
from registry.upkeep.retention import Rules, prune
from registry.upkeep.rules import Keep

RECORD = RESULTS / "year.json"
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
    parser = argparse.ArgumentParser(prog="python -m bench.year", description=__doc__)
    parser.add_argument("--small", action="store_true", help="200 hosts and one month")
    parser.add_argument("--months", type=int, choices=DAYS, default=12)
    parser.add_argument("--only", choices=("without", "with"))
    parser.add_argument("--home", type=Path, help="folder for the databases, which stay there")
    given = parser.parse_args()
    sizes, months = (SMALL, 1) if given.small else (Sizes(), given.months)
    record: Measured = json.loads(RECORD.read_text()) if RECORD.exists() and not given.small else {}
    record |= {"machine": machine(), "sizes": asdict(sizes), "rules": RULES}
    with tempfile.TemporaryDirectory() as folder:
        for name in (one for one in VARIANTS if given.only in (None, one.split()[0])):
            home = (given.home or Path(folder)) / name.split()[0]
            rules = None if name == WITHOUT else rules_of(RULES)
            for month, found in _measured(home, sizes, months, rules):
                record.setdefault("months", {}).setdefault(str(month), {})[name] = {"date": now(), **found}
                if not given.small:
                    write_record(RECORD, record)
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


@dataclass(slots=True)
class YearSoFar:
    """A history that is written day by day, as it is kept between two runs of the benchmark."""

    history: History
    days: int = 0
    write_seconds: float = 0.0
    prune_seconds: float = 0.0

    @classmethod
    def at(cls, path: Path, registry: Registry, sizes: Sizes) -> YearSoFar:
        """Go on where the last run ended, or begin."""
        if not path.exists():
            return cls(History.begin(registry, sizes, START))
        found: YearSoFar = pickle.loads(path.read_bytes())
        if found.history.sizes != sizes:
            raise SystemExit(f"{path} is of another size: {found.history.sizes}")
        return found

    def save(self, path: Path) -> None:
        """Keep the state for another run."""
        draft = path.with_suffix(".new")
        draft.write_bytes(pickle.dumps(self))
        draft.replace(path)

    def write_day(self, registry: Registry, rules: Rules | None) -> None:
        """Write the next day, and prune."""
        begin = time.perf_counter()
        self.history.write_day(registry)
        written = time.perf_counter()
        if rules is not None:
            prune(registry.database, rules, self.history.time)
        self.days += 1
        self.write_seconds += written - begin
        self.prune_seconds += time.perf_counter() - written
        seconds = self.write_seconds + self.prune_seconds
        print(f"{seconds:8.0f} s  {self.history.time:%Y-%m-%d}", file=sys.stderr, flush=True)


def _measured(home: Path, sizes: Sizes, months: int, rules: Rules | None) -> Iterator[tuple[int, Measured]]:
    """Write a history; yield after some months their number and what was measured."""
    state = home / "history.pickle"
    try:
        for month, days in ((one, DAYS[one]) for one in DAYS if one <= months):
            with _opened(home) as registry:
                year = YearSoFar.at(state, registry, sizes)
                if year.days >= days:
                    continue
                while year.days < days - 1:
                    year.write_day(registry, rules)
                    year.save(state)
                year.write_day(registry, rules)
            stop(home)  # until then its log of transactions is part of the size
            found: Measured = {
                "write_seconds": round(year.write_seconds, 1),
                "prune_seconds": round(year.prune_seconds, 1),
                "written": asdict(year.history.written),
                "stored_bytes": stored_bytes(home),
            }
            if rules is not None:
                found |= _compacted(home)
            with _opened(home) as registry:
                found["reads"] = measure_reads(registry, year.history.time, sizes.seed)
                found["ingests"] = measure_ingests(registry, year.history)
                year.save(state)
            yield month, found
    finally:
        stop(home)


def _compacted(home: Path) -> Measured:
    """Compact the files of a server; return the time that it took and their sizes afterwards."""
    begin = time.perf_counter()
    compact(home)
    seconds = round(time.perf_counter() - begin, 1)
    stop(home)
    return {"compact_seconds": seconds, "compacted_bytes": stored_bytes(home)}


@contextmanager
def _opened(home: Path) -> Iterator[Registry]:
    """Start the server of a folder and open its registry."""
    ensure_server(home, idle_seconds=IDLE_SECONDS, progress=silent)
    with Registry.open(home=home) as registry:
        yield registry


if __name__ == "__main__":
    main()
