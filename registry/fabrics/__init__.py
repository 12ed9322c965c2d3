"""A cluster's fabric over time.

Input: observations, forwarding tables, intended wiring and host layouts.
Output: the fabric valid at a time, its changes, and the derived graph.
"""
