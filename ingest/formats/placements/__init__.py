"""Formats of placements.

Input: rank files, host files and reports of launchers.
Output: the host of each rank.
"""
