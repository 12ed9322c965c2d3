"""Append-only records: placements, traces, simulations and circuit plans.

Input: results of searches and simulations with their provenance.
Output: stored records by id prefix, newest first.
"""
