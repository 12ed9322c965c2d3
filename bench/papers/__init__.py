"""Do we reproduce the papers? One package per field: process mapping, circuits of optical switches.

Input: values printed in the papers, with the sentence that states each.
Output: tables beside the papers' values; records, pages and plots below build/bench, or under bench/results.
"""

from importlib.util import find_spec

if find_spec("numba") is None:  # another Python than that of the installation
    raise SystemExit("bench.papers needs this project's installation: .venv/bin/python -m bench.papers.NAME")
