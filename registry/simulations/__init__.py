"""Traces of runs, and what simulating them on a fabric gave: append-only."""
