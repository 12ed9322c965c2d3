"""The demonstration: a registry filled with real and generated data.

Input: the files in `almanac/demo_data`.
Output: clusters, jobs, placements, simulations and a circuit plan in the registry.
"""
