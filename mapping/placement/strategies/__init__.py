"""Strategies: each computes a placement from scratch; one file each, listed in `mapping.placement.catalog`.

Input: a problem and a random generator.
Output: the host of each rank.
"""
