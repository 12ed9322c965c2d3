"""Figures and tables of three papers, ours beside theirs: ``python -m bench.papers.mapping [NAME]...``.

One module a figure. What a paper says stands in ``values.toml`` with the sentence it says it in; values that
are in a picture alone are not there. Each run writes ``bench/results/papers/NAME.json`` and, from all that
are there, ``papers.md`` and a plot each.
"""
