"""Placements with their cost and provenance.

Input: placements with evaluation, bounds and baselines.
Output: stored placements by id prefix, as a history, or as columns.
"""
