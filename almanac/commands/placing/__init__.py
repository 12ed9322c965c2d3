"""Commands on placements of a job's ranks: find, evaluate, compare, list and export them.

Input: a profile, and a job, hosts or a placement.
Output: tables, JSON, files of launchers; placements in the registry.
"""
