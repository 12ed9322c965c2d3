"""Port counters of a fabric's links.

Input: counter sweeps.
Output: growth between two sweeps, rates per link, daily summaries.
"""
