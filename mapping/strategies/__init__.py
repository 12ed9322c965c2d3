"""Strategies: each finds a placement from nothing. A new one is a file and a line in `mapping.catalog`."""
