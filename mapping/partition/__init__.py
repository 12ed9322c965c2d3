"""Ranks cut into parts of exact sizes, and laid on the cores of a host."""
