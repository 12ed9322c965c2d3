"""Tables and figures of Ajwani et al. 2013, ours beside theirs: ``python -m bench.papers.circuits``.

One module a part; each writes ``bench/results/reconfigure/NAME.json``, and all that are there give
``reconfigure.md`` and a plot each. What the paper says stands in ``tables.toml`` and ``values.toml``; what it
leaves open is calibrated on its Table 1 alone (`bench.papers.circuits.calibration`) and published beside.
"""
