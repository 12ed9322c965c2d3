"""The load of all running jobs on one fabric.

Input: running jobs with profiles and placements.
Output: shared links, the jobs and ranks that load them, and the effect of changes.
"""
