"""Certified lower bounds on the cost of any placement, each named after the argument that proves it.

Input: routes, a profile and an allocation.
Output: a bound for each metric, with the name of its argument.
"""
