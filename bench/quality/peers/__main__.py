"""Run our search and other tools over many instances; write ``bench/results/peers.json`` and ``peers.md``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.quality.peers.measure import (
    Limits,
    markdown,
    measure,
    read_recorded,
    run_peers,
    same_instance,
    summary,
)
from bench.quality.peers.tools import limits_of_tools, missing
from bench.support.instances import FOLDER, SHIPPED, Contest, anywhere, generated, recorded
from bench.support.machine import about, now, peak_memory_gb, write_record
from bench.support.paths import RESULTS
from bench.support.structured import structured

ALL_HOSTS = "percs9248/nlpkkt80_1792"
"""Instance that is also run with every host of the machine to choose from, against the peers on the first."""
ANY = " (all hosts)"


def main(arguments: list[str] | None = None) -> None:
    """Run every instance and record after each."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality.peers", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=SHIPPED)
    parser.add_argument(
        "--seconds", type=float, action="append", help="limits of the searches (default: 1, 10 and 30)"
    )
    parser.add_argument(
        "--peer-seconds", type=float, default=60.0, help="processor time of a process of another tool"
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="parts of names of instances; the record keeps the others",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-generated", action="store_true", help="only the folder's instances")
    parser.add_argument("--no-folder", action="store_true", help="only the generated instances")
    parser.add_argument("--peers-only", action="store_true", help="run other tools, not our searches")
    parser.add_argument(
        "--keep-peers",
        action="store_true",
        help="use what other tools found in an earlier run with the same limit, if there is one",
    )
    parser.add_argument("--output", type=Path, default=RESULTS / "peers.json")
    given = parser.parse_args(arguments)
    limits = Limits(
        seconds=tuple(given.seconds or (1.0, 10.0, 30.0)), peer_seconds=given.peer_seconds, seed=given.seed
    )
    found, every_host, memory = _kept(given.output, limits) if given.only else ({}, {}, 0.0)
    folder = {} if given.no_folder else instances(given.folder, with_generated=False)
    made = {} if given.no_generated else generated() | structured()
    for name, make in (folder | made).items():
        if given.only and not any(part in name for part in given.only):
            continue
        host, _, guest = name.removesuffix(ANY).partition("/")
        lines = [
            line for line in read_recorded(given.folder) if (line["host"], line["guest"]) == (host, guest)
        ]
        print(name, file=sys.stderr, flush=True)
        contest = make()
        peers = _peers(name, contest, limits, lines, given.output if given.keep_peers else None)
        _write_peers(given.output, name, peers)
        if given.peers_only:
            continue
        measured = {
            **about(),
            "peers_date": peers["date"],
            "peer_seconds": limits.peer_seconds,
            **measure(contest, limits, peers["results"]),
        }
        (every_host if name.endswith(ANY) else found)[name] = measured
        record = {
            "date": now(),
            "folder": given.folder.name,
            "seconds": limits.seconds,
            "seed": limits.seed,
            "missing": missing(),
            "limits_of_tools": limits_of_tools(),
            "peak_memory_gb": max(memory, peak_memory_gb()),
            "summary": summary(found) if found else [],
            "all_hosts": summary(every_host) if every_host else [],
            "instances": found | every_host,
        }
        write_record(given.output, record, markdown(record))
    print(given.output, file=sys.stderr)


def peer_runs(output: Path) -> Path:
    """Return the file beside a record that keeps what other tools found, so that ours can be run alone."""
    return output.with_name(f"{output.stem}_runs.json")


def _peers(
    name: str, contest: Contest, limits: Limits, recorded: list[dict[str, Any]], kept: Path | None
) -> dict[str, Any]:
    """Return the results of other tools with date, machine and limit: kept ones if they fit, or new ones."""
    path = None if kept is None else peer_runs(kept)
    stored = json.loads(path.read_text()) if path is not None and path.exists() else {}
    found: dict[str, Any] = stored.get(name, {})
    if found.get("peer_seconds") == limits.peer_seconds and same_instance(contest, found["results"]):
        return found
    return {
        **about(),
        "peer_seconds": limits.peer_seconds,
        "results": run_peers(contest, limits, recorded),
    }


def _write_peers(output: Path, name: str, peers: dict[str, Any]) -> None:
    path = peer_runs(output)
    stored = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(stored | {name: peers}, indent=1) + "\n")


def _kept(path: Path, limits: Limits) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]], float]:
    """Return the instances for which ours had the same limits and seed, those with every host, and memory."""
    record = json.loads(path.read_text()) if path.exists() else {}
    same = {"seconds": list(limits.seconds), "seed": limits.seed}
    if any(record.get(key) != value for key, value in same.items()):
        return {}, {}, 0.0
    stored = record["instances"]
    return (
        {name: one for name, one in stored.items() if not name.endswith(ANY)},
        {name: one for name, one in stored.items() if name.endswith(ANY)},
        float(record["peak_memory_gb"]),
    )


def instances(folder: Path, with_generated: bool) -> dict[str, Callable[[], Contest]]:
    """Return the instances found in the folder, and the generated ones."""
    found: dict[str, Callable[[], Contest]] = {}
    for name in FOLDER:
        host, guest = name.split("/")
        if (folder / f"host_{host}.npz").exists() and (folder / f"guest_{guest}.npz").exists():
            found[name] = partial(recorded, folder, host, guest)
            if name == ALL_HOSTS:
                found[name + ANY] = partial(anywhere, folder, host, guest)
    return found | (generated() if with_generated else {})


if __name__ == "__main__":
    main()
