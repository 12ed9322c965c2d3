"""All benchmarks, one after the other: ``python -m bench``. Each records its own file under results/."""

from __future__ import annotations

from bench import congestion, ingest_director, placement


def main() -> None:
    """Run them; the machine should do nothing else meanwhile."""
    ingest_director.main()
    congestion.main()
    placement.main([])


if __name__ == "__main__":
    main()
