"""Comparison of the intended wiring with a fabric.

Input: a fabric and the plan of its cables.
Output: `differences.compare`, and findings in the groups missing, unexpected, wrong port and wrong speed.
"""
