"""Results that a change of the code's structure keeps: searches, bounds, simulations, files, stored ids.

Run ``python -m bench.same`` before a change, which writes ``bench/results/same.json``, and
``python -m bench.same --check`` after it, which names what differs and exits with 1. All runs have a number
of steps or trials and one worker, so that they are the same at any speed. Of JSON the values count, not the
names of its keys; left out are times of the clock and the version.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.support.machine import save
from bench.support.paths import RESULTS, ROOT

RECORD = RESULTS / "same.json"
DATA = ROOT / "tests" / "data"
OF_THE_CLOCK = {"wall_seconds", "code_version", "started_at", "stored_at", "created_at", "run", "age_seconds"}
"""Keys whose values differ from run to run."""
MADE = """
generate fabric dragonfly --a 4 --h 2 --p 2 -o dragonfly.csv
generate fabric three-level --pods 4 --leaves 4 --hosts 8 -o tree.csv
generate fabric hyperx --sides 4,4 --hosts 2 -o hyperx.csv
generate fabric slim-fly --q 5 -o slim.csv
generate fabric torus --sides 4x4x4 -o torus.csv
generate fabric rail-pods --pods 2 --domains 4 --gpus 8 --rails 8 --spines 4 -o pods.csv
generate profile stencil --sides 4,4,4 --points 27 -o stencil.csv
generate profile random --ranks 48 --partners 5 --seed 3 -o random.csv
generate profile ai-layout --tensor 8 --data 4 --pipeline 2 -o ai.csv
generate profile hpcg --grid 4,4,2 -o hpcg.csv
"""
FILES = {
    "scan": "infiniband/fattree2-64-traffic/ibnetdiscover.txt",
    "tables": "infiniband/fattree2-64-traffic/opensm-lfts.dump",
    "mixed": "infiniband/mixed-speeds-oversubscribed/ibnetdiscover.txt",
    "irregular": "infiniband/irregular-16sw-updown/ibnetdiscover.txt",
    "dor": "infiniband/torus-4x4x4-dor/ibnetdiscover.txt",
    "cg": "openmpi/npb_cg_S_64.tar.gz",
    "lulesh": "openmpi/lulesh_s5_i10_64.tar.gz",
    "cg16": "openmpi/npb_cg_S_16.tar.gz",
    "snap": "openmpi/snap_16.tar.gz",
    "jobs": "slurm/scontrol_show_jobs_d.txt",
    "accounting": "slurm/sacct_P.txt",
    "sweep": "counters/traffic-counters.txt.gz",
}
RUNS = """
map stencil.csv --fabric torus.csv --steps 20000
map stencil.csv --fabric tree.csv --steps 20000 --seed 5
map random.csv --fabric dragonfly.csv --steps 20000
map random.csv --fabric slim.csv --steps 20000 --objective hop-bytes
map ai.csv --fabric pods.csv --steps 5000
map hpcg.csv --fabric hyperx.csv --steps 20000 --pareto
map {cg} --fabric {scan} --fabric {tables} --steps 9000 --export openmpi-rankfile=rf --export csv=out.csv
map {lulesh} --fabric {scan} --steps 20000 --objective network-congestion
map {cg} --fabric {mixed} --steps 20000 --rails same-rail
map {cg16} --fabric {irregular} --steps 20000
map {snap} --fabric {dor} --steps 20000 --slots 2
map {cg} --fabric {scan} --steps 5000 --consecutive --slots 4
simulate {cg} --fabric {scan} --placement rf --rounds 2
simulate {cg} --fabric {scan} --placement rf --mode flits --routing shortest-paths
cluster check --fabric {scan} --fabric {tables}
"""
STORED = """
ingest {scan} {tables} --cluster c --observed-at 2026-01-01
ingest {mixed} --cluster m --observed-at 2026-01-01
ingest {irregular} --cluster i --observed-at 2026-01-02
ingest {jobs} {accounting} --cluster c --observed-at 2026-01-02
ingest {sweep} --cluster c --observed-at 2026-01-03
ingest {cg} {lulesh} {snap} hpcg.csv
generate profile stencil --sides 4,4,4 --points 27 --save
reconfigure hpcg --nodes 32 --max-degree 4 --max-edges 64 --link-speed 1e9 --trials 60
reconfigure npb_cg_S_64 --nodes 16 --max-degree 3 --max-edges 20 --link-speed 1e9 --paper
map npb_cg_S_64 --cluster c --hosts node[0001-0064] --at 2026-01-01 --steps 5000 --workers 1
"""
IDS = "MATCH (n) WHERE NOT n:IngestRun RETURN labels(n)[0] AS label, n.id AS id ORDER BY label, id"


def main(check: bool = False) -> int:
    """Run everything, and record the digest of each result, or compare it with the recorded one."""
    digests = dict(results())
    if not check:
        save(RECORD, {"results": len(digests)}, digests)
        return 0
    before = json.loads(RECORD.read_text("utf-8"))["steps"]
    different = sorted(
        name for name in before.keys() | digests.keys() if before.get(name) != digests.get(name)
    )
    print("\n".join(different if different else ["all results are the same"]))
    return int(bool(different))


def results() -> Iterator[tuple[str, Any]]:
    """Yield the name and the digest of each result."""
    with tempfile.TemporaryDirectory() as folder:
        named = {name: str(DATA / path) for name, path in FILES.items()}
        for line in MADE.strip().splitlines():
            run(folder, line)
        for line in RUNS.strip().splitlines():
            words = line.format(**named) + (" --json --workers 1" if line.startswith("map") else " --json")
            yield line, digest(values(run(folder, words)))
        for path in sorted(Path(folder).iterdir()):
            if path.is_file():
                yield path.name, digest(path.read_text("utf-8"))
        for line in STORED.strip().splitlines():
            if line.startswith(("map", "reconfigure")):
                yield line, digest(values(run(folder, line.format(**named) + " --json")))
            else:
                run(folder, line.format(**named))
        ids = f"query {shlex.quote(IDS)} --csv"
        yield "ids", digest(run(folder, ids))
        run(folder, "db backup all.backup")
        run(folder, "db stop")
        run(folder, "db restore all.backup", home="restored")
        yield "ids of a restored backup", digest(run(folder, ids, home="restored"))
        run(folder, "db stop", home="restored")
        for words in commands():
            yield f"options of {words}", digest(" ".join(options(run(folder, f"{words} --help"))))


def run(folder: str, line: str, home: str = "home") -> str:
    """Run a command in a folder and return what it prints; 4 and 5 are no failures."""
    variables = {**os.environ, "ALMANAC_HOME": str(Path(folder) / home), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", "from almanac.cli import main; main()", *shlex.split(line)]
    done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4, 5):
        raise RuntimeError(f"almanac {line}: {done.stderr}")
    return done.stdout


def values(text: str) -> str:
    """Return the values of a JSON document in order of their text, without those of the clock."""

    def leaves(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            for key, value in node.items():
                if key not in OF_THE_CLOCK:
                    yield from leaves(value)
        elif isinstance(node, list):
            yield "[" + ",".join(leaf for value in node for leaf in leaves(value)) + "]"
        elif node is not None:
            yield json.dumps(node)

    return "\n".join(sorted(leaves(json.loads(text))))


def commands() -> list[str]:
    """Return the words of every command."""
    from almanac.reference import commands as every

    return [words for words, _ in every()]


def options(text: str) -> list[str]:
    """Return the names of options that a help text lists."""
    return sorted(set(re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", text)))


def digest(text: str) -> str:
    """Return sixteen digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
