"""Which placements run fastest when simulated? Run ``python -m bench.simulation [--small]``.

One module per figure or question. The papers' values are in ``values.toml``. Each run writes
``bench/results/simulation/NAME.json`` and, from all that are there, ``simulation.md`` and a plot each. Traces
of CG and SP at 64 ranks are files of one's own: ``--traces FOLDER``; without them what needs them is left
out, and named.
"""
