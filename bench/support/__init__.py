"""What several benchmarks share.

Input: shipped and generated instances, results of single measurements.
Output: records, pages and plots; a served dashboard for browsers.
"""
