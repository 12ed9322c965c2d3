"""Reproduce the tables and figures of Ajwani et al. 2013: ``python -m bench.papers.circuits``.

One module a part; each writes ``bench/results/reconfigure/NAME.json``, and all that are there give
``reconfigure.md`` and a plot each. The paper's values are in ``tables.toml`` and ``values.toml``; what it
leaves open is calibrated on its Table 1 alone (`bench.papers.circuits.calibration`) and published beside.
"""
