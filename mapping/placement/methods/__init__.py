"""Strategies and refiners, listed in `mapping.placement.catalog`.

A strategy is a function ``place_ranks(problem, generator, *, options) -> int32[ranks]`` that returns the host
index of each rank, from scratch. The same state of the generator gives the same placement; most strategies do
not use it. Pins are applied afterwards. Refiners: see `mapping.placement.candidate`. Docstrings describe
options only; one out of range raises `InvalidValue`, an unknown word `UnknownName`.
"""
