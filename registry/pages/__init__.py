"""Reads for pages: one module per page, each with the few statements that the page needs.

Input: an open database; names, filters and times that a page asks for.
Output: clusters, fabrics, jobs, placements and simulations with everything that a page shows of them.
"""
