"""Formats of communication profiles and traces.

Input: matrices, edge lists, and files of MPI and GPU tracing tools.
Output: a `Profile`, or a `Trace`. In every format, bytes below zero and ranks from `shared.MAX_RANKS` on are
errors, and messages of a rank to itself are dropped and counted.
"""
