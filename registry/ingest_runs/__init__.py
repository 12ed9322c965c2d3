"""Saving the result of one ingest, and the log of all ingests.

Input: an `Intake` of merged sources.
Output: what was stored, the log of runs, and the age of each source's data.
"""
