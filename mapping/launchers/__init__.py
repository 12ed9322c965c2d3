"""Placements in the file formats of launchers; one file per format, listed in `mapping.launchers.catalog`.

Input: a placement and its fabric.
Output: the text of a file.
"""
