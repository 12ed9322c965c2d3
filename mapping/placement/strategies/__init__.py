"""Strategies: each computes a placement from scratch; one file each, listed in `mapping.placement.catalog`.

Input: a problem and a random generator.
Output: the host of each rank.

A strategy is a function ``place_ranks(problem, generator, *, options) -> int32[ranks]`` that returns the host
index of each rank. Its docstring describes its options only. An option out of range raises `InvalidValue`, an
unknown word `UnknownName`. The same state of the generator gives the same placement; most strategies do not
use it. Pins are applied afterwards.
"""
