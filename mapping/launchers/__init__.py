"""Placements in the file formats of launchers, listed in `mapping.launchers.catalog`.

Input: a placement and its fabric.
Output: the text of a file.
"""
