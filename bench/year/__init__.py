"""How large does the registry grow in a year, and how fast are its commonest reads then?

Input: a generated cluster of 2,000 hosts that changes 30 times a day, its counters and its jobs.
Output: ``bench/results/year.json``.
"""
