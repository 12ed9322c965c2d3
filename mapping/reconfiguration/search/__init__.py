"""Our own search, which continues where the loop of the paper ends.

Input: an application, a machine and a topology with partition and routes.
Output: a topology, partition and routes of at least the same throughput.
"""
