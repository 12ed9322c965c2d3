"""Reproduce figures and tables of three papers: ``python -m bench.papers.mapping [NAME]...``.

One module per figure. The papers' values are in ``values.toml`` with the sentence that states each;
values that only a picture shows are not there. Each run writes
``bench/results/papers/NAME.json`` and, from all records, ``papers.md`` and the plots.
"""
