"""The co-optimising loop of the 2013 paper, step by step, with its section numbers.

Input: an application, a machine and a seed topology.
Output: the best topology found, its partition and routes, and the list of iterations.
"""
