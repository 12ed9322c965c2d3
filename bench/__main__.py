"""Run the short benchmarks of this program one after the other: ``python -m bench``.

Each writes its own file under bench/results. The longer ones have their own commands:
``python -m bench.quality.peers``, ``bench.quality.members``, ``bench.quality.cores``,
``bench.quality.bounds``, ``bench.speed.scale``, ``bench.speed.ingest_large``,
``bench.speed.several_machines``, ``bench.speed.ingest_jobs``,
``bench.speed.install``, ``bench.speed.first_minute``, ``bench.speed.known_placement``, ``bench.speed.suite``,
``bench.papers.mapping``, ``bench.papers.circuits``,
``bench.simulation``, ``bench.simgrid``, ``bench.dashboard``, ``bench.faults``, ``bench.year``,
``bench.loop``, ``bench.launchers``.
"""

from __future__ import annotations

from bench.speed import congestion, ingest_director, ingest_profile


def main() -> None:
    """Run them; the machine should do nothing else meanwhile."""
    ingest_director.main()
    ingest_profile.main()
    congestion.main()


if __name__ == "__main__":
    main()
