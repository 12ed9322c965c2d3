"""Partitions of ranks into groups of exact sizes, and cores within a host.

Input: a profile and the sizes of groups.
Output: the group of each rank; the core of each rank.
"""
