"""The group `almanac cluster`: one fabric over time, its problems, host layouts and optical switch.

Input: the name of a cluster.
Output: tables, JSON, or files of other tools.
"""
