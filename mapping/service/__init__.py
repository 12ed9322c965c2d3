"""The functions of `mapping` on data from the registry.

Input: requests that name profiles, jobs and clusters, and an open registry.
Output: reports; placements and circuit plans saved in the registry.

The only package of `mapping` that uses the database, through `registry.registry.Registry`.
"""
