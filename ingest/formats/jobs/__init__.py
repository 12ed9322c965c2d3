"""Formats of jobs.

Input: output of Slurm and Flux.
Output: jobs with their hosts.
"""
