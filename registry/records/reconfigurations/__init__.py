"""Optical switches of clusters and the circuit plans computed for them.

Input: switches, present circuits and circuit plans.
Output: stored plans by id prefix, newest first.
"""
