"""The links that a message uses; one file per routing, listed in `mapping.routing.catalog`.

Input: a fabric and a list of hosts.
Output: loads of links, distances, and route arrays for kernels.
"""
