"""Is the dashboard fast with a month of a large machine? Run ``python -m bench.dashboard``.

Input: a generated database of 10,000 hosts, 1,000 jobs and 20,000 placements.
Output: bench/results/dashboard.json; pictures for the documentation.
"""
