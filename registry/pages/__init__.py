"""Reads for pages: one module per page, each with the few statements that the page needs.

Input: an open database; names, filters and times of a page (an unknown name raises `UnknownName`).
Output: clusters, fabrics, jobs, placements and simulations with everything that a page shows of them.
"""
