"""Do we reproduce the papers? One package per field: process mapping, circuits of optical switches."""

from importlib.util import find_spec

if find_spec("numba") is None:  # another Python than that of the installation
    raise SystemExit("bench.papers needs this project's installation: .venv/bin/python -m bench.papers.NAME")
