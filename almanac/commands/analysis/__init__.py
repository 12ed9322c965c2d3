"""Commands that predict: congestion now, changes of the fabric, simulated runs, circuits of optical switches.

Input: a cluster or profile by name, or files, and options.
Output: tables, JSON or CSV.
"""
