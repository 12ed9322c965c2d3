"""Formats of communication profiles and traces.

Input: matrices, edge lists, and files of MPI and GPU tracing tools.
Output: a `Profile`, or a `Trace`.
"""
