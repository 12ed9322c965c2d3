"""The benchmarks of this program alone, one after the other: ``python -m bench``.

Each records its own file under results/. Longer ones are run by themselves: ``python -m bench.scale``,
``python -m bench.peers``, ``python -m bench.members``, ``python -m bench.cores``, ``python -m bench.papers``,
``python -m bench.simulation``, ``python -m bench.simgrid``, ``python -m bench.reconfigure``,
``python -m bench.dashboard``.
"""

from __future__ import annotations

from bench import congestion, ingest_director, ingest_profile


def main() -> None:
    """Run them; the machine should do nothing else meanwhile."""
    ingest_director.main()
    ingest_profile.main()
    congestion.main()


if __name__ == "__main__":
    main()
