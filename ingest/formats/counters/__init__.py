"""Formats of port counters.

Input: output of perfquery, ibqueryerrors and similar tools.
Output: counter sweeps.
"""
