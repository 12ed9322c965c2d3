"""Are the placements good? Compared with other tools, and our own strategies with each other.

Input: instances of `bench.support.instances` and of a folder.
Output: records and pages under bench/results.
"""
