"""Run the short benchmarks of this program one after the other: ``python -m bench``.

The machine should do nothing else meanwhile. Each writes its own file under bench/results. The longer ones
have their own commands, see docs/explanation/benchmarks.md.
"""

from __future__ import annotations

from bench.speed import congestion, ingest

if __name__ == "__main__":
    ingest.main(["director", "profile"])
    congestion.main()
