"""Parsers of files by kind of data, listed in `ingest.catalog`.

Input: the text of one or several files.
Output: `Parsed`: a fabric, routes, counters, jobs, profiles, placements or host layouts.
"""
