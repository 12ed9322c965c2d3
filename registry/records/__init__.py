"""Append-only results of computations.

Input: placements, simulations and circuit plans with their provenance.
Output: the same records by id prefix, newest first, or as columns.
"""
