"""Formats of placements.

Input: rank files, host files and reports of launchers.
Output: the host of each rank. In every format, a missing or repeated rank, and no ranks, are errors.
"""
