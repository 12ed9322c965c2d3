"""Jobs that run at a time, and the advice computed for them.

Input: a cluster and a time.
Output: running jobs with their fabric, placements and advice.
"""
