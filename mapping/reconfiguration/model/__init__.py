"""Data types: application, machine, topology, solution.

Input: lists of edges, links and weights.
Output: checked, read-only dataclasses; throughput of a partition and its routes.
"""
