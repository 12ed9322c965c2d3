"""How long does it take, and how much memory: ingest, congestion and searches at growing sizes.

Input: generated fabrics, profiles and jobs.
Output: records, pages and plots under bench/results.
"""
