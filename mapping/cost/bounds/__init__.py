"""Certified lower bounds on the cost of any placement, each named after the argument that proves it."""
