"""Traces, and the results of replaying them on a fabric.

Input: traces and simulation results with their provenance.
Output: stored traces and simulations by id prefix, newest first.
"""
