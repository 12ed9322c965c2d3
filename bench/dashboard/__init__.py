"""Is the dashboard fast with a month of a large machine? Run ``python -m bench.dashboard``."""
