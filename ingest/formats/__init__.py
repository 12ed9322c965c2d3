"""Parsers, one file per format, listed in `ingest.catalog`.

Input: the text of one or several files.
Output: `Parsed`: a fabric, routes, counters, jobs, profiles, placements or host layouts.
"""
