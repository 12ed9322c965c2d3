"""Four writers and four readers at the same time, each a loop of commands.

Each writer has a cluster of its own and all share another. What a command has reported as saved must be there
at the end unless its writer has deleted it.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.faults.commands import ALMANAC, environment, run

SHARED = "shared"
START = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS = "n[0-1]-[0-3]"
"""Eight hosts that all fabrics of `scans_of` have."""
ACCEPTED = (0, 4)
"""Exit codes of a command that worked; 4: problems of the fabric were found."""
READS: tuple[tuple[str, ...], ...] = (
    ("cluster", "show", SHARED, "--json"),
    ("cluster", "changes", SHARED, "--json"),
    ("cluster", "check", SHARED, "--json"),
    ("history", "--json"),
    ("metrics",),
    ("query", "MATCH (o:Observation) RETURN count(o)", "--json"),
)


@dataclass(slots=True)
class Tally:
    """What one loop did: ended commands by exit code, faults, and the observations it left."""

    codes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    kept: set[tuple[str, str]] = field(default_factory=set)


def crowd(
    scans: Sequence[Path], seconds: float, variables: Mapping[str, str], work: Path
) -> tuple[list[Tally], list[str]]:
    """Run four writers and four readers for a time; return what each did, and what is lost."""
    end = time.monotonic() + seconds
    with ThreadPoolExecutor(8) as pool:
        writers = [pool.submit(_write, number, scans, end, variables, work) for number in range(4)]
        readers = [pool.submit(_read, number, end, variables, work) for number in range(4)]
        tallies = [loop.result() for loop in (*writers, *readers)]
    lost = []
    for cluster in sorted({cluster for tally in tallies for cluster, _ in tally.kept}):
        there = set(_observations(cluster, variables, work))
        kept = {at for tally in tallies for name, at in tally.kept if name == cluster}
        lost += [f"{cluster} at {at} is lost" for at in sorted(kept - there)]
        before = {at for at in there if datetime.fromisoformat(at) < START}
        lost += [f"{cluster} at {at} is not deleted" for at in sorted(there - kept - before)]
    return tallies, lost


def _write(number: int, scans: Sequence[Path], end: float, variables: Mapping[str, str], work: Path) -> Tally:
    """Ingest scans into an own and the shared cluster, place, and delete every third own observation."""
    tally, own, turn = Tally(), f"own{number}", 0
    while time.monotonic() < end:
        at = (START + timedelta(minutes=4 * turn + number)).strftime("%Y-%m-%dT%H:%M:%SZ")
        for cluster in (own, SHARED):
            words = ["ingest", "--cluster", cluster, "--observed-at", at, str(scans[turn % len(scans)])]
            if _done(words, tally, variables, work):
                tally.kept.add((cluster, at))
        if turn % 3 == 2:
            identity = _observations(own, variables, work)[at]
            if _done(["observation", "delete", identity, "--yes"], tally, variables, work):
                tally.kept.discard((own, at))
        words = ["map", "ring", "--cluster", own, "--hosts", HOSTS, "--steps", "200", "--seed", str(turn)]
        _done(words, tally, variables, work)
        turn += 1
    return tally


def _read(number: int, end: float, variables: Mapping[str, str], work: Path) -> Tally:
    tally, turn = Tally(), number
    while time.monotonic() < end:
        _done(list(READS[turn % len(READS)]), tally, variables, work)
        turn += 1
    return tally


def _done(words: list[str], tally: Tally, variables: Mapping[str, str], work: Path) -> bool:
    """Run a command and count it; return True if it worked."""
    outcome = run(words, variables, work)
    tally.codes[f"{' '.join(words[:2]) if words[0] != 'query' else 'query'}: {outcome.code}"] += 1
    if outcome.code not in ACCEPTED:
        tally.faults.append(f"{' '.join(words)}: {outcome.code}: {outcome.said[-200:]}")
    return outcome.code in ACCEPTED


def _observations(cluster: str, variables: Mapping[str, str], work: Path) -> dict[str, str]:
    """Return the ids of a cluster's observations by time."""
    words = ["observation", "list", cluster, "--json"]
    printed = subprocess.run(
        [*ALMANAC, *words], cwd=work, env=environment(variables), capture_output=True, text=True, check=True
    )
    return {row["observed_at"]: row["observation"] for row in json.loads(printed.stdout)}


def scans_of(folder: Path, variables: Mapping[str, str]) -> list[Path]:
    """Write fabrics of several sizes to a folder; save one, and the profile that the writers place."""
    scans = []
    for sides in ("4,4", "4,5", "5,5", "6,6"):
        scans.append(folder / f"torus-{sides.replace(',', '-')}.csv")
        words = ["generate", "fabric", "torus", "--sides", sides, "--format", "csv", "-o", str(scans[-1])]
        _required(words, variables, folder)
    before = (START - timedelta(days=1)).isoformat()
    _required(["ingest", "--cluster", SHARED, "--observed-at", before, str(scans[0])], variables, folder)
    _required(["generate", "profile", "ring", "--ranks", "8", "--save", "--name", "ring"], variables, folder)
    return scans


def _required(words: list[str], variables: Mapping[str, str], work: Path) -> None:
    outcome = run(words, variables, work)
    if outcome.code:
        raise RuntimeError(f"{' '.join(words)}: {outcome.said}")
