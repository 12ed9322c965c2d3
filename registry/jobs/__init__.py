"""Jobs as reported by their scheduler.

Input: jobs and the hosts that they ran on.
Output: jobs and allocations, by id, cluster, user or time.
"""
