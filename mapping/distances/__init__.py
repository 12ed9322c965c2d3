"""The cost of a byte between two hosts.

Input: routes, tables of distances, and the load of other jobs.
Output: distances between hosts or groups of hosts; background load per link.
"""
